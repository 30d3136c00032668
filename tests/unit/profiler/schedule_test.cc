// SPDX-License-Identifier: Apache-2.0
#include "profiler/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class ScheduleTest : public testing::Test {
 protected:
  Moment Now() const { return {clock_.Now(), clock_.WallNow()}; }
  std::chrono::nanoseconds TimeToEnd(MonotonicTime begin) const {
    return Between(clock_.Now(), schedule_.EndOfWindow(begin));
  }

  FakeClock clock_;
  Schedule schedule_{seconds(10)};
};

TEST_F(ScheduleTest, EndsAWindowWithoutConsumersAfterTheLongestTime) {
  EXPECT_EQ(TimeToEnd(clock_.Now()), seconds(10));
  EXPECT_THAT(schedule_.EndPeriods(Now()), IsEmpty());
}

TEST_F(ScheduleTest, EndsAWindowWhereTheFirstPeriodEnds) {
  schedule_.Add(1, {.length = seconds(5)}, Now());
  clock_.Advance(seconds(1));
  schedule_.Add(2, {.length = seconds(3)}, Now());
  EXPECT_EQ(TimeToEnd(clock_.Now()), seconds(3));
  clock_.Advance(seconds(3));
  EXPECT_THAT(schedule_.EndPeriods(Now()), ElementsAre(2));
  EXPECT_EQ(TimeToEnd(clock_.Now()), seconds(1));
  clock_.Advance(seconds(1));
  EXPECT_THAT(schedule_.EndPeriods(Now()), ElementsAre(1));
  EXPECT_EQ(TimeToEnd(clock_.Now()), seconds(2));
}

TEST_F(ScheduleTest, CutsPeriodsThatAreLongerThanAWindowMayBe) {
  schedule_.Add(1, {.length = seconds(60)}, Now());
  const MonotonicTime begin = clock_.Now();
  clock_.Advance(seconds(10));
  EXPECT_EQ(schedule_.EndOfWindow(begin), clock_.Now());
  EXPECT_THAT(schedule_.EndPeriods(Now()), IsEmpty());
}

TEST_F(ScheduleTest, AlignsPeriodsWithTheWallClock) {
  clock_.Advance(milliseconds(3700));
  schedule_.Add(1, {.length = seconds(10), .aligned = true}, Now());
  const auto into = clock_.WallNow().time_since_epoch() % seconds(10);
  EXPECT_EQ(TimeToEnd(clock_.Now()), seconds(10) - into);
  clock_.Advance(seconds(10) - into);
  EXPECT_THAT(schedule_.EndPeriods(Now()), ElementsAre(1));
  EXPECT_EQ(TimeToEnd(clock_.Now()), seconds(10));
}

TEST_F(ScheduleTest, MakesNoSliverOfAPeriodThatEndedAMomentEarly) {
  const auto into = clock_.WallNow().time_since_epoch() % seconds(10);
  clock_.Advance(seconds(10) - into - milliseconds(2));
  schedule_.Add(1, {.length = seconds(8), .aligned = false}, Now());
  schedule_.Add(2, {.length = seconds(10), .aligned = true}, Now());
  schedule_.Remove(1);
  EXPECT_EQ(TimeToEnd(After(clock_.Now(), seconds(5))), seconds(10) + milliseconds(2));
}

TEST_F(ScheduleTest, ForgetsWhoIsRemoved) {
  schedule_.Add(1, {.length = seconds(2)}, Now());
  schedule_.Remove(1);
  EXPECT_EQ(TimeToEnd(clock_.Now()), seconds(10));
  EXPECT_THAT(schedule_.EndAll(), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
