// SPDX-License-Identifier: Apache-2.0
#include "sampler/sample_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

TEST(CheckSampleRate, RefusesWhatTheKernelWouldThrottle) {
  TemporaryTree tree;
  tree.File("proc/sys/kernel/perf_event_max_sample_rate", "999\n");
  EXPECT_TRUE(CheckSampleRate(tree.AsProcfs(), Hertz{999}).has_value());
  const Result<void> check = CheckSampleRate(tree.AsProcfs(), Hertz{1000});
  ASSERT_FALSE(check.has_value());
  EXPECT_EQ(check.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(check.error().message(), testing::HasSubstr("give --frequency 999"));
}

TEST(CheckSampleRate, TrustsAKernelThatDoesNotTell) {
  TemporaryTree tree;
  EXPECT_TRUE(CheckSampleRate(tree.AsProcfs(), Hertz{10'000}).has_value());
  tree.File("proc/sys/kernel/perf_event_max_sample_rate", "much\n");
  EXPECT_TRUE(CheckSampleRate(tree.AsProcfs(), Hertz{10'000}).has_value());
}

}  // namespace
}  // namespace pyrometer
