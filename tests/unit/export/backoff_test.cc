// SPDX-License-Identifier: Apache-2.0
#include "export/backoff.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr MonotonicTime kNow(1'000'000'000'000);
constexpr RetryPolicy kPolicy{.min_backoff = milliseconds(500), .max_backoff = minutes(5)};

TEST(Backoff, BeginsWithOneRequestAndAllowsMoreWithEachAnswer) {
  Backoff backoff(kPolicy, 3, 1);
  EXPECT_TRUE(backoff.Admits(kNow, 0));
  EXPECT_FALSE(backoff.Admits(kNow, 1));
  backoff.Answered(backoff.period());
  EXPECT_TRUE(backoff.Admits(kNow, 1));
  for (int i = 0; i < 10; ++i) backoff.Answered(backoff.period());
  EXPECT_TRUE(backoff.Admits(kNow, 2));
  EXPECT_FALSE(backoff.Admits(kNow, 3));
}

TEST(Backoff, PausesLongerWithEachFailureButNeverBeyondTheMaximum) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Backoff backoff(kPolicy, 16, seed);
    MonotonicTime now = kNow;
    std::chrono::nanoseconds most = 2 * kPolicy.min_backoff;
    for (int i = 0; i < 20; ++i) {
      backoff.Failed(backoff.period(), now, std::nullopt);
      EXPECT_FALSE(backoff.Admits(now, 0));
      const std::chrono::nanoseconds pause = Between(now, backoff.next());
      EXPECT_GE(pause, kPolicy.min_backoff);
      EXPECT_LE(pause, std::min<std::chrono::nanoseconds>(most, kPolicy.max_backoff));
      most *= 2;
      now = backoff.next();
      EXPECT_TRUE(backoff.Admits(now, 0));
      EXPECT_FALSE(backoff.Admits(now, 1));
    }
  }
}

TEST(Backoff, CountsRequestsThatFailTogetherOnce) {
  Backoff backoff(kPolicy, 16, 1);
  const uint64_t period = backoff.period();
  for (int i = 0; i < 16; ++i) backoff.Failed(period, kNow, std::nullopt);
  EXPECT_LE(Between(kNow, backoff.next()), 2 * kPolicy.min_backoff);
}

TEST(Backoff, IsNotEndedByAnAnswerToAnEarlierRequest) {
  Backoff backoff(kPolicy, 16, 1);
  const uint64_t period = backoff.period();
  backoff.Failed(period, kNow, std::nullopt);
  backoff.Answered(period);
  EXPECT_TRUE(backoff.is_failing());
  backoff.Answered(backoff.period());
  EXPECT_FALSE(backoff.is_failing());
}

TEST(Backoff, GivesTheTimeThatTheDestinationAsksFor) {
  Backoff backoff(kPolicy, 16, 1);
  backoff.Failed(backoff.period(), kNow, seconds(40));
  EXPECT_GE(Between(kNow, backoff.next()), seconds(40));
  EXPECT_LE(Between(kNow, backoff.next()), seconds(44));
}

TEST(Backoff, WaitsNoLessForADestinationThatAsksForLess) {
  Backoff backoff(kPolicy, 16, 1);
  backoff.Failed(backoff.period(), kNow, milliseconds(1));
  EXPECT_GE(Between(kNow, backoff.next()), kPolicy.min_backoff);
}

TEST(Backoff, DoesNotWaitAnHourForADestinationThatAsksForIt) {
  Backoff backoff(kPolicy, 16, 1);
  backoff.Failed(backoff.period(), kNow, std::chrono::hours(1));
  EXPECT_GE(Between(kNow, backoff.next()), kPolicy.max_backoff);
  EXPECT_LE(Between(kNow, backoff.next()), kPolicy.max_backoff * 11 / 10);
  backoff.Failed(backoff.period(), kNow, std::chrono::nanoseconds::max());
  EXPECT_LE(Between(kNow, backoff.next()), kPolicy.max_backoff * 11 / 10);
  backoff.Failed(backoff.period(), kNow, std::chrono::nanoseconds::min());
  EXPECT_LE(Between(kNow, backoff.next()), kPolicy.max_backoff * 11 / 10);
}

}  // namespace
}  // namespace pyrometer
