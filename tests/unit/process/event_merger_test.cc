// SPDX-License-Identifier: Apache-2.0
#include "process/event_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProcessEvent ExitAt(uint64_t when, uint32_t pid = 1) {
  return ExitEvent{MonotonicTime(when), Pid(pid), Tid(pid)};
}

std::vector<uint64_t> Times(const std::vector<ProcessEvent>& events) {
  std::vector<uint64_t> times;
  for (const ProcessEvent& event : events) times.push_back(When(event).value());
  return times;
}

TEST(EventMerger, OrdersEventsOfDifferentRingsByTime) {
  EventMerger merger;
  for (const uint64_t when : {10, 40, 50}) merger.Add(ExitAt(when));  // one ring
  for (const uint64_t when : {20, 30, 60}) merger.Add(ExitAt(when));  // another
  EXPECT_THAT(Times(merger.Release(MonotonicTime(100))), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_EQ(merger.late(), 0U);
}

TEST(EventMerger, HoldsBackWhatIsLaterThanTheHorizon) {
  EventMerger merger;
  merger.Add(ExitAt(10));
  merger.Add(ExitAt(30));
  EXPECT_THAT(Times(merger.Release(MonotonicTime(20))), ElementsAre(10));
  EXPECT_TRUE(merger.has_pending());
  merger.Add(ExitAt(25));
  EXPECT_THAT(Times(merger.Release(MonotonicTime(30))), ElementsAre(25, 30));
  EXPECT_FALSE(merger.has_pending());
  EXPECT_EQ(merger.late(), 0U);
}

TEST(EventMerger, KeepsTheRingsOrderOfEqualTimes) {
  EventMerger merger;
  for (const uint32_t pid : {3, 1, 2}) merger.Add(ExitAt(10, pid));
  std::vector<uint32_t> pids;
  for (const ProcessEvent& event : merger.Release(MonotonicTime(10))) {
    pids.push_back(std::get<ExitEvent>(event).pid.value());
  }
  EXPECT_THAT(pids, ElementsAre(3, 1, 2));
}

TEST(EventMerger, ReleasesAndCountsWhatComesTooLate) {
  EventMerger merger;
  merger.Add(ExitAt(50));
  EXPECT_THAT(Times(merger.Release(MonotonicTime(60))), ElementsAre(50));
  merger.Add(ExitAt(40));
  EXPECT_THAT(Times(merger.Release(MonotonicTime(70))), ElementsAre(40));
  EXPECT_EQ(merger.late(), 1U);
}

TEST(EventMerger, ReleasesNothingWhenThereIsNothing) {
  EventMerger merger;
  EXPECT_THAT(merger.Release(MonotonicTime(1)), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
