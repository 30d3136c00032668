// SPDX-License-Identifier: Apache-2.0
#include "base/latency_histogram.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace pyrometer {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(LatencyHistogram, SaysNothingOfNothing) {
  const LatencyHistogram none;
  EXPECT_EQ(none.Quantile(0.99), microseconds(0));
  EXPECT_EQ(none.longest(), microseconds(0));
}

TEST(LatencyHistogram, FindsQuantilesToWithinAnEighth) {
  LatencyHistogram times;
  for (int64_t us = 1; us <= 100'000; ++us) times.Add(microseconds(us));
  for (const double share : {0.0001, 0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = share * 100'000;
    const auto found = static_cast<double>(times.Quantile(share).count());
    EXPECT_GE(found, exact) << share;
    EXPECT_LE(found, exact * 1.125) << share;
  }
  EXPECT_EQ(times.Quantile(1), microseconds(100'000)) << "never more than there was";
  EXPECT_EQ(times.longest(), microseconds(100'000));
}

TEST(LatencyHistogram, KeepsFewMicrosecondsApart) {
  LatencyHistogram times;
  times.Add(nanoseconds(1));
  times.Add(microseconds(3));
  times.Add(microseconds(8));
  EXPECT_EQ(times.Quantile(0.3), microseconds(1)) << "rounded up";
  EXPECT_EQ(times.Quantile(0.6), microseconds(3));
  EXPECT_EQ(times.Quantile(0.7), microseconds(8));
}

TEST(LatencyHistogram, CountsThoseUpToALimit) {
  LatencyHistogram times;
  for (int64_t us = 1; us <= 2'000; ++us) times.Add(microseconds(us));
  EXPECT_EQ(times.count(), 2'000);
  EXPECT_EQ(times.sum(), microseconds(2'001'000));
  EXPECT_EQ(times.CountUpTo(microseconds(1'023)), 1'023);
  EXPECT_EQ(times.CountUpTo(microseconds(0)), 0);
  EXPECT_EQ(times.CountUpTo(hours(1)), 2'000);
}

TEST(LatencyHistogram, TakesWhatClocksThatDisagreeOrStandStillMakeOfATime) {
  LatencyHistogram times;
  times.Add(microseconds(-7));
  EXPECT_EQ(times.Quantile(1), microseconds(0));
  times.Add(hours(1000));
  EXPECT_EQ(times.Quantile(0.5), microseconds(0));
  EXPECT_EQ(times.Quantile(1), times.longest());
  EXPECT_EQ(times.longest(), microseconds(UINT32_MAX));
}

}  // namespace
}  // namespace pyrometer
