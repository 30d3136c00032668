// SPDX-License-Identifier: Apache-2.0
// What is sampled.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

using std::chrono::seconds;

TEST_F(SamplerLive, FiltersBeforeAnythingElse) {
  const Child wanted;
  const Child other;
  Sampler::Options options = WithoutColdSamples({.frequency = {999}});
  options.filter.pids = {wanted.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  WaitFor([&] { return sampler->windows().accounting().exported >= 100; });
  sampler->windows().Stop();
  const Result<Window> window = sampler->windows().Drain();
  ASSERT_TRUE(window.has_value());
  EXPECT_GE(sampler->windows().accounting().exported, 100U);
  EXPECT_GT(sampler->windows().accounting().filtered, 0U);
  for (const Sample& sample : window->samples) {
    EXPECT_EQ(sample.process.pid, wanted.pid());
  }
}

TEST_F(SamplerLive, FollowsChildrenOfAWantedProcess) {
  Sampler::Options options = WithoutColdSamples({.frequency = {999}});
  options.filter.pids = {Pid(static_cast<uint32_t>(getpid()))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const pid_t child = Fork([] {
    waitpid(Fork([] {
              prctl(PR_SET_NAME, "grandchild");
              SpinFor(seconds(1));
            }),
            nullptr, 0);
  });
  waitpid(child, nullptr, 0);
  sampler->windows().Stop();
  const Result<Window> window = sampler->windows().Drain();
  ASSERT_TRUE(window.has_value());
  uint64_t of_grandchild = 0;
  for (const Sample& sample : window->samples) {
    if (sample.comm == "grandchild") of_grandchild += sample.count;
  }
  EXPECT_GT(of_grandchild, 0U);
  EXPECT_EQ(sampler->counters().missed_children, 0U);
}

TEST_F(SamplerLive, HasRoomForACgroupWhereAnotherIsForgotten) {
  constexpr uint64_t kMost = 1024;
  Sampler::Options options;
  options.filter.cgroups = {1};  // ids of none
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler);
  for (uint64_t id = 2; id <= kMost; ++id) ASSERT_TRUE(sampler->windows().WantCgroup(id));
  EXPECT_EQ(sampler->windows().WantCgroup(kMost + 1).error().code(), ErrorCode::kExhausted);
  sampler->windows().ForgetWantedCgroup(7);
  EXPECT_TRUE(sampler->windows().WantCgroup(kMost + 1));
}

}  // namespace
}  // namespace pyrometer
