// SPDX-License-Identifier: Apache-2.0
#include "process/resync_schedule.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

MonotonicTime Milliseconds(uint64_t n) {
  return MonotonicTime(n * 1'000'000);
}

// The pauses that follow when records are lost during each of so many resyncs of `took`.
std::vector<uint64_t> Pauses(int resyncs, uint64_t took) {
  ResyncSchedule schedule;
  std::vector<uint64_t> pauses;
  uint64_t now = 5000;
  schedule.NoteLost(Milliseconds(now));
  for (int i = 0; i < resyncs; ++i) {
    schedule.Begin(Milliseconds(now));
    schedule.NoteLost(Milliseconds(now));
    now += took;
    schedule.End(Milliseconds(now));
    const uint64_t ended = now;
    while (!schedule.IsDue(Milliseconds(now))) now += 10;
    pauses.push_back(now - ended);
  }
  return pauses;
}

TEST(ResyncSchedule, BeginsAtOnceTheFirstTime) {
  ResyncSchedule schedule;
  EXPECT_FALSE(schedule.IsDue(Milliseconds(5000)));
  EXPECT_FALSE(schedule.NoteLost(Milliseconds(5000))) << "it is not put off";
  EXPECT_TRUE(schedule.IsDue(Milliseconds(5000)));
}

TEST(ResyncSchedule, LetsOneComeToItsEndWhenMoreIsLost) {
  ResyncSchedule schedule;
  schedule.NoteLost(Milliseconds(5000));
  schedule.Begin(Milliseconds(5000));
  EXPECT_TRUE(schedule.NoteLost(Milliseconds(5100)));
  EXPECT_FALSE(schedule.NoteLost(Milliseconds(5150))) << "there is one already";
  EXPECT_FALSE(schedule.IsDue(Milliseconds(60'000))) << "as long as it takes";
  schedule.End(Milliseconds(60'000));
  EXPECT_FALSE(schedule.IsDue(Milliseconds(60'000 + 4 * 55'000 - 1)));
  EXPECT_TRUE(schedule.IsDue(Milliseconds(60'000 + 4 * 55'000)));
}

TEST(ResyncSchedule, IsDoneWhenNothingMoreIsLost) {
  ResyncSchedule schedule;
  schedule.NoteLost(Milliseconds(5000));
  schedule.Begin(Milliseconds(5000));
  schedule.End(Milliseconds(5100));
  EXPECT_FALSE(schedule.IsDue(Milliseconds(500'000)));
}

TEST(ResyncSchedule, BacksOffWhileLossesGoOn) {
  EXPECT_EQ(Pauses(8, 100),
            (std::vector<uint64_t>{1000, 2000, 4000, 8000, 16'000, 32'000, 60'000, 60'000}));
}

TEST(ResyncSchedule, TakesAFifthOfTheTimeAtMost) {
  EXPECT_EQ(Pauses(3, 2000), (std::vector<uint64_t>{8000, 16'000, 32'000}));
  EXPECT_EQ(Pauses(3, 20'000), (std::vector<uint64_t>{80'000, 80'000, 80'000}));
}

TEST(ResyncSchedule, ForgetsTheLossesOfOldAfterACalm) {
  ResyncSchedule schedule;
  uint64_t now = 5000;
  for (int i = 0; i < 2; ++i) {
    schedule.NoteLost(Milliseconds(now));
    schedule.Begin(Milliseconds(now));
    schedule.End(Milliseconds(now));
    now += 1000;
  }
  now += 10'000;  // the pause was 2 s
  schedule.NoteLost(Milliseconds(now));
  schedule.Begin(Milliseconds(now));
  schedule.End(Milliseconds(now));
  schedule.NoteLost(Milliseconds(now));
  EXPECT_FALSE(schedule.IsDue(Milliseconds(now + 999)));
  EXPECT_TRUE(schedule.IsDue(Milliseconds(now + 1000)));
}

}  // namespace
}  // namespace pyrometer
