// SPDX-License-Identifier: Apache-2.0
#include "process/process_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(ProcessHistoryTest, KnowsAndPublishesScannedProcesses) {
  Scan();
  EXPECT_EQ(PathAt(100, 5, 3, kStart + 0x10), "/lib/a+0x3010");
  ASSERT_THAT(sink_.by_pid, SizeIs(1));
  const RecordingSink::Published& published = sink_.by_pid[Pid(100)];
  EXPECT_EQ(published.process, (ProcessKey{Pid(100), StartTime(5)}));
  EXPECT_EQ(published.exec, ExecId(3));
  ASSERT_THAT(published.mappings, SizeIs(1));
  EXPECT_EQ(published.mappings[0].mapping.ToElfAddress(Address(kStart)), ElfAddress(0x3000));
}

TEST_F(ProcessHistoryTest, WithdrawsAProgramThatIsReplacedByExec) {
  Scan();
  ASSERT_TRUE(sink_.by_pid.contains(Pid(100)));
  Exec(100);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(100))) << "nothing is mapped yet";
  Apply(Mapping(100, "/lib/b", 'b'));
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec, ExecId(4));
}

TEST_F(ProcessHistoryTest, WithdrawsAProcessWhosePidIsAnothersBeforeItsExitIsSeen) {
  Scan();
  Fork(999, 100);  // its parent is unknown, and with it all that it has mapped
  EXPECT_FALSE(sink_.by_pid.contains(Pid(100)));
}

TEST_F(ProcessHistoryTest, PublishesAgainWhatTheKernelSideHadNoRoomForAndMisses) {
  Scan();
  const int before = sink_.publishes;
  history_.PublishMissed();
  EXPECT_EQ(sink_.publishes, before);
  sink_.missed = {Pid(100)};
  history_.PublishMissed();
  EXPECT_EQ(sink_.publishes, before + 1);
  sink_.missed = {Pid(999)};
  history_.PublishMissed();
  EXPECT_TRUE(sink_.withdrawn.contains(Pid(999))) << "it has ended meanwhile";
}

TEST_F(ProcessHistoryTest, PublishesNothingWhoseExecIsUnknown) {
  ASSERT_TRUE(history_.Scan({}).has_value());
  EXPECT_TRUE(sink_.by_pid.empty());
  EXPECT_EQ(PathAt(100, 5, 77, kStart), "/lib/a+0x3000") << "known by time nevertheless";
}

TEST_F(ProcessHistoryTest, FollowsForkExecAndExit) {
  Scan();
  ForkLiving(100, 200);
  const StartTime start = sink_.by_pid[Pid(200)].process.start_time;
  EXPECT_EQ(sink_.by_pid[Pid(200)].mappings, sink_.by_pid[Pid(100)].mappings);
  EXPECT_EQ(PathAt(200, start.value(), 3, kStart), "/lib/a+0x3000");
  Exec(200);
  Apply(Mapping(200, "/lib/b", 'b'));
  EXPECT_EQ(sink_.by_pid[Pid(200)].exec, ExecId(4));
  EXPECT_EQ(PathAt(200, start.value(), 4, kStart), "/lib/b+0x3000");
  Exit(200);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(200)));
  EXPECT_EQ(PathAt(200, start.value(), 4, kStart), "/lib/b+0x3000") << "still known";
}

TEST_F(ProcessHistoryTest, EndsAProcessWhoseLeaderHadEndedBefore) {
  const std::string maps = "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b");
  machine_.AddProcess(300, 7, "", "zombie", 'Z');
  machine_.WriteFile(machine_.proc() + "/300/task/301/maps", maps + "\n");
  Scan();
  EXPECT_EQ(history_.process_count(), 2U);
  Apply(ExitEvent{Now(), Pid(300), Tid(301)});
  EXPECT_EQ(history_.process_count(), 1U);
}

TEST_F(ProcessHistoryTest, WithdrawsWhatOnlyTheKernelSideKnewOf) {
  Scan();
  const std::vector<ProcessEvent> burst = {ForkEvent{Now(), Pid(200), Tid(200), Pid(100)},
                                           ExitEvent{Now(), Pid(200), Tid(200)}};
  history_.Apply(burst);
  EXPECT_TRUE(sink_.withdrawn.contains(Pid(200))) << "it inherited its parent's mappings there";
}

TEST_F(ProcessHistoryTest, PublishesTheStartThatASampleTells) {
  Scan();
  ForkLiving(100, 200);
  ProcessKey key = sink_.by_pid[Pid(200)].process;
  key.start_time = StartTime(key.start_time.value() - 7);
  EXPECT_TRUE(history_.MappingsAt(key, ExecId(3), Now()).has_value());
  EXPECT_EQ(sink_.by_pid[Pid(200)].process, key);
}

TEST_F(ProcessHistoryTest, PublishesOncePerBurst) {
  Scan();
  ForkLiving(100, 200);
  Exec(200);
  const int before = sink_.publishes;
  std::vector<ProcessEvent> burst;
  for (uint64_t i = 0; i < 5; ++i) {
    MappingEvent event = Mapping(200, "/lib/b", 'b');
    event.range.start = Address(kStart + i * 0x10000);
    event.range.end = Address(kStart + i * 0x10000 + 0x2000);
    burst.push_back(event);
  }
  history_.Apply(burst);
  EXPECT_EQ(sink_.publishes, before + 1);
  EXPECT_THAT(sink_.by_pid[Pid(200)].mappings, SizeIs(5));
}

TEST_F(ProcessHistoryTest, TellsHowLongItTookToPublishAChangeFromItsFirstEventOn) {
  Scan();
  EXPECT_EQ(history_.counters().publish_us_longest, 0U) << "nothing has changed";
  const MonotonicTime born = Before(Now(), 3s);
  const std::vector<ProcessEvent> burst = {
      ForkEvent{born, Pid(200), Tid(200), Pid(100)},
      At(Mapping(200, "/lib/b", 'b'), kStart + 0x10000, kStart + 0x12000)};
  history_.Apply(burst);
  ASSERT_THAT(sink_.by_pid[Pid(200)].mappings, SizeIs(2));
  const ProcessCounters counters = history_.counters();
  EXPECT_GE(counters.publish_us_longest, 3'000'000U);
  EXPECT_LE(counters.publish_us_longest, Between(born, Now()) / 1us + 1);
  EXPECT_EQ(counters.publish_us_99_percent, counters.publish_us_longest);
}

TEST_F(ProcessHistoryTest, CountsNoTimeInWhichNothingWasToBePublished) {
  Scan();
  const MonotonicTime now = Now();
  Apply(ForkEvent{Before(now, 3s), Pid(200), Tid(200), Pid(100)});
  Apply(CommEvent{Before(now, 2s), Pid(200), Tid(200), true, "new"});
  EXPECT_FALSE(sink_.by_pid.contains(Pid(200))) << "nothing is mapped yet";
  Apply(Mapping(200, "/lib/b", 'b'));
  EXPECT_TRUE(sink_.by_pid.contains(Pid(200)));
  EXPECT_GE(history_.counters().publish_us_longest, 3'000'000U);
  EXPECT_LT(history_.counters().publish_us_median, 1'000'000U);
}

TEST_F(ProcessHistoryTest, CountsTheTimeInWhichTheKernelSideHadNoRoomForAChange) {
  Scan();
  const uint64_t before = history_.counters().publishes;
  sink_.has_room = false;
  Apply(ForkEvent{Before(Now(), 3s), Pid(200), Tid(200), Pid(100)});
  EXPECT_EQ(history_.counters().publish_us_longest, 0U) << "it does not know it yet";
  EXPECT_EQ(history_.counters().publishes, before);
  sink_.has_room = true;
  sink_.missed = {Pid(200)};
  history_.PublishMissed();
  EXPECT_GE(history_.counters().publish_us_longest, 3'000'000U);
  EXPECT_EQ(history_.counters().publishes, before + 1);
}

TEST_F(ProcessHistoryTest, ReplaysEventsOlderThanTheScanWithoutHarm) {
  const MappingEvent stale = Mapping(100, "/lib/b", 'b');
  const ForkEvent fork{Now(), Pid(200), Tid(200), Pid(100)};
  machine_.AddProcess(200, BootClock::Now().ToStartTime(fork.when).value(), "");
  const ExitEvent exit{Now(), Pid(200), Tid(201)};
  Scan();
  Apply(stale);
  Apply(fork);
  Apply(exit);
  EXPECT_EQ(PathAt(100, 5, 3, kStart), "/lib/a+0x3000");
  EXPECT_EQ(history_.process_count(), 2U);
}

TEST_F(ProcessHistoryTest, SaysWhoLivesWhenItHasReadAllOfProc) {
  Scan();
  EXPECT_THAT(sink_.living, ElementsAre(Pid(100)));
  ForkLiving(100, 200);
  EXPECT_THAT(sink_.living, ElementsAre(Pid(100))) << "not at every event";
  Scan();
  EXPECT_THAT(sink_.living, ElementsAre(Pid(100), Pid(200)));
}

TEST_F(ProcessHistoryTest, CorrectsItselfFromProcAfterLostRecords) {
  Scan();
  ForkLiving(100, 200);
  EXPECT_FALSE(history_.TakeLost());
  Apply(LostEvent{Now(), 12});
  EXPECT_TRUE(history_.TakeLost());
  EXPECT_FALSE(history_.TakeLost());
  // Lost: 100 mapped another library, 200 ended, 300 was born.
  machine_.RemoveProcess(200);
  machine_.RemoveProcess(100);
  machine_.AddProcess(
      100, 5, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  machine_.AddProcess(
      300, 77, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/a") + "\n");
  Scan();
  EXPECT_EQ(PathAt(100, 5, 3, kStart), "/lib/b+0x3000");
  EXPECT_EQ(PathAt(300, 77, 1, kStart), "/lib/a+0x3000");
  EXPECT_FALSE(sink_.by_pid.contains(Pid(200)));
  EXPECT_EQ(history_.process_count(), 2U);
  EXPECT_EQ(history_.counters().lost_records, 12U);
}

TEST_F(ProcessHistoryTest, AdoptsAProcessNoEventToldOf) {
  Scan();
  machine_.AddProcess(
      300, 77, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  MappingEvent event = Mapping(300, "/lib/a", 'a');
  event.when = Now();
  Apply(event);
  EXPECT_EQ(PathAt(300, 77, 1, kStart), "/lib/b+0x3000");
}

TEST_F(ProcessHistoryTest, LeavesOutProcessesThatOnlyWaitForTheirParent) {
  machine_.AddProcess(400, 9, "", "zombie", 'Z');
  Scan();
  EXPECT_EQ(history_.process_count(), 1U);
}

TEST_F(ProcessHistoryTest, SurvivesHostileProcContent) {
  machine_.AddProcess(400, 9, "\x01\xff\nffffffffffffffff-0 r-xp 0 0:0 0\n", ") R 1 1 (");
  machine_.AddProcess(401, 9, "1000-2000 r-xp 00000000 00:00 0 /lib/a\\012b\n");
  machine_.WriteFile(machine_.proc() + "/402/stat", "garbage");
  machine_.WriteFile(machine_.proc() + "/99999999999/stat", "garbage");
  Scan();
  EXPECT_EQ(history_.process_count(), 3U);
  EXPECT_EQ(PathAt(401, 9, 1, 0x1000), "/lib/a\nb+0x0");
}

}  // namespace
}  // namespace pyrometer
