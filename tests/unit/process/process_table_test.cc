// SPDX-License-Identifier: Apache-2.0
#include "process/process_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kTick = 10'000'000;
constexpr ObjectId kOld{10};
constexpr ObjectId kNew{11};

MonotonicTime Tick(uint64_t n) {
  return MonotonicTime(n * kTick);
}
ForkEvent Fork(uint32_t parent, uint32_t pid, uint64_t tick) {
  return {Tick(tick), Pid(pid), Tid(pid), Pid(parent)};
}
ForkEvent Thread(uint32_t pid, uint32_t tid, uint64_t tick) {
  return {Tick(tick), Pid(pid), Tid(tid), Pid(pid)};
}
ExitEvent Exit(uint32_t pid, uint32_t tid, uint64_t tick) {
  return {Tick(tick), Pid(pid), Tid(tid)};
}
CommEvent Exec(uint32_t pid, uint64_t tick, std::string comm = "new") {
  return {Tick(tick), Pid(pid), Tid(pid), true, std::move(comm)};
}
CodeMapping Text(ObjectId object) {
  return {{Address(0x1000), Address(0x2000), object, 0}};
}

ScannedProcess Scanned(uint32_t pid, uint64_t start, uint64_t read_at) {
  ScannedProcess process;
  process.key = {Pid(pid), StartTime(start)};
  process.read_at = Tick(read_at);
  process.comm = "scanned";
  process.threads = {Tid(pid)};
  process.maps.emplace();
  return process;
}

TaskRecord Task(uint32_t pid, uint64_t start, uint32_t exec, uint64_t read_at) {
  return {Pid(pid), Tid(pid), StartTime(start), ExecId(exec), Tick(read_at)};
}

// A table with one process: pid 100, started at tick 1, program 5, scanned at tick 50.
class ProcessTableTest : public testing::Test {
 protected:
  ProcessTableTest() {
    const TaskRecord task = Task(100, 1, 5, 49);
    table_.Add(Scanned(100, 1, 50), {Text(kOld)}, &task);
  }

  ObjectId ObjectOf(uint32_t pid, uint64_t start, uint32_t exec, uint64_t tick) const {
    const Program* program = table_.Find({Pid(pid), StartTime(start)}, ExecId(exec), Tick(tick));
    if (program == nullptr) return ObjectId(0);
    const auto mapping = program->space.At(Address(0x1000), Tick(tick));
    return mapping ? mapping->object : ObjectId(0);
  }

  ProcessTable table_;
};

TEST_F(ProcessTableTest, FindsAScannedProcessByStartAndExec) {
  EXPECT_EQ(ObjectOf(100, 1, 5, 60), kOld);
  EXPECT_EQ(ObjectOf(100, 2, 5, 60), ObjectId(0)) << "another life of the pid";
  EXPECT_EQ(ObjectOf(100, 1, 6, 60), ObjectId(0)) << "a program nobody told of";
  EXPECT_EQ(ObjectOf(101, 1, 5, 60), ObjectId(0));
}

TEST_F(ProcessTableTest, KnowsWhatWasMappedBeforeTheScan) {
  EXPECT_EQ(ObjectOf(100, 1, 5, 10), kOld);
}

TEST_F(ProcessTableTest, GivesEachProgramOfAProcessItsOwnMappings) {
  Process* const process = table_.Apply(Exec(100, 70));
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->program().comm, "new");
  process->program().space.Map(Text(kNew), Tick(71));
  EXPECT_EQ(ObjectOf(100, 1, 5, 69), kOld);
  EXPECT_EQ(ObjectOf(100, 1, 6, 71), kNew);
  EXPECT_EQ(ObjectOf(100, 1, 6, 70), ObjectId(0)) << "nothing is mapped yet";
}

TEST_F(ProcessTableTest, LetsAChildInheritItsParentsProgram) {
  Process* const child = table_.Apply(Fork(100, 200, 60));
  ASSERT_NE(child, nullptr);
  table_.Living(Pid(100))->program().space.Map(Text(kNew), Tick(65));
  EXPECT_EQ(ObjectOf(200, 60, 5, 70), kOld);
  EXPECT_EQ(ObjectOf(100, 1, 5, 70), kNew);
  EXPECT_EQ(child->program().comm, "scanned");
}

TEST_F(ProcessTableTest, CountsAChildsExecsFromItsParents) {
  table_.Apply(Fork(100, 200, 60));
  table_.Apply(Exec(200, 61));
  table_.Apply(Exec(200, 62))->program().space.Map(Text(kNew), Tick(63));
  EXPECT_EQ(ObjectOf(200, 60, 7, 64), kNew);
  EXPECT_EQ(ObjectOf(100, 1, 5, 64), kOld);
}

TEST_F(ProcessTableTest, MatchesADerivedStartTimeThatIsLate) {
  table_.Apply(Fork(100, 200, 160));
  EXPECT_EQ(ObjectOf(200, 159, 5, 161), kOld);
  EXPECT_EQ(ObjectOf(200, 60, 5, 161), kOld) << "its fork took a second";
  EXPECT_EQ(ObjectOf(200, 59, 5, 161), ObjectId(0));
  EXPECT_EQ(ObjectOf(200, 161, 5, 161), ObjectId(0)) << "started after its fork was reported";
  EXPECT_TRUE(table_.Apply(Exit(200, 200, 162)));
  EXPECT_EQ(ObjectOf(200, 158, 5, 161), kOld) << "it has ended";
}

TEST_F(ProcessTableTest, MatchesAnExactStartTimeExactly) {
  EXPECT_EQ(ObjectOf(100, 1, 5, 61), kOld);
  EXPECT_EQ(ObjectOf(100, 0, 5, 61), ObjectId(0));
}

TEST_F(ProcessTableTest, TellsLivesOfOneClockTickApartByTime) {
  table_.Apply(Fork(100, 200, 60));
  const MonotonicTime soon(Tick(60).value() + 1000);
  EXPECT_TRUE(table_.Apply(ExitEvent{soon, Pid(200), Tid(200)}));
  ForkEvent again = Fork(100, 200, 60);
  again.when = MonotonicTime(soon.value() + 1000);
  table_.Apply(again)->program().space.Map(Text(kNew), again.when);
  EXPECT_EQ(ObjectOf(200, 60, 5, 60), kOld);
  EXPECT_EQ(ObjectOf(200, 60, 5, 61), kNew);
}

TEST_F(ProcessTableTest, TakesTheNearestOfTwoDerivedStarts) {
  table_.Apply(Fork(100, 200, 60));
  EXPECT_TRUE(table_.Apply(Exit(200, 200, 65)));
  table_.Apply(Fork(100, 200, 70));
  table_.Apply(Exec(200, 71))->program().space.Map(Text(kNew), Tick(71));
  EXPECT_EQ(ObjectOf(200, 59, 5, 61), kOld);
  EXPECT_EQ(ObjectOf(200, 69, 6, 72), kNew);
}

TEST_F(ProcessTableTest, LearnsTheStartOfAProcessFromItsSamples) {
  table_.Apply(Fork(100, 200, 60));
  const ProcessKey key{Pid(200), StartTime(55)};  // its fork was reported 5 ticks later
  EXPECT_FALSE(table_.LearnStart(key, Tick(59))) << "a sample of whoever had the pid before";
  EXPECT_FALSE(table_.LearnStart({Pid(200), StartTime(61)}, Tick(62))) << "started after its fork";
  EXPECT_TRUE(table_.LearnStart(key, Tick(61)));
  EXPECT_EQ(ObjectOf(200, 55, 5, 61), kOld);
  EXPECT_EQ(ObjectOf(200, 60, 5, 61), ObjectId(0));
  EXPECT_FALSE(table_.LearnStart({Pid(200), StartTime(54)}, Tick(62))) << "it is exact now";
}

TEST_F(ProcessTableTest, AddsTheSuspendedTimeToDerivedStartTimes) {
  table_.set_clock(BootClock(1000 * kTick));
  table_.Apply(Fork(100, 200, 60));
  EXPECT_EQ(ObjectOf(200, 1060, 5, 61), kOld);
}

TEST_F(ProcessTableTest, KeepsTheLivesOfAReusedPidApart) {
  table_.Apply(Fork(100, 200, 60));
  EXPECT_TRUE(table_.Apply(Exit(200, 200, 65)));
  table_.Apply(Fork(100, 200, 70));
  table_.Apply(Exec(200, 71))->program().space.Map(Text(kNew), Tick(71));
  EXPECT_EQ(ObjectOf(200, 60, 5, 61), kOld);
  EXPECT_EQ(ObjectOf(200, 70, 6, 72), kNew);
  EXPECT_EQ(ObjectOf(200, 70, 5, 70), kOld) << "before its exec";
}

TEST_F(ProcessTableTest, EndsTheOldLifeWhenItsExitWasLost) {
  table_.Apply(Fork(100, 200, 60));
  EXPECT_EQ(table_.living_count(), 2U);
  table_.Apply(Fork(100, 200, 80));
  EXPECT_EQ(table_.living_count(), 2U);
  EXPECT_EQ(ObjectOf(200, 60, 5, 61), kOld);
  EXPECT_EQ(ObjectOf(200, 80, 5, 81), kOld);
}

TEST_F(ProcessTableTest, LivesOnWhenOnlyItsLeaderExits) {
  EXPECT_EQ(table_.Apply(Thread(100, 101, 55)), nullptr);
  EXPECT_FALSE(table_.Apply(Exit(100, 100, 60)));
  EXPECT_NE(table_.Living(Pid(100)), nullptr);
  EXPECT_TRUE(table_.Apply(Exit(100, 101, 61)));
  EXPECT_EQ(table_.Living(Pid(100)), nullptr);
}

TEST_F(ProcessTableTest, SurvivesAnExecByAnotherThanTheLeader) {
  table_.Apply(Thread(100, 101, 55));
  EXPECT_FALSE(table_.Apply(Exit(100, 100, 60)));   // killed by the exec of 101
  ASSERT_NE(table_.Apply(Exec(100, 61)), nullptr);  // 101 is 100 from now on
  EXPECT_TRUE(table_.Apply(Exit(100, 100, 70)));
}

TEST_F(ProcessTableTest, RenamesAProcessByItsLeadersNameOnly) {
  table_.Apply(CommEvent{Tick(60), Pid(100), Tid(101), false, "worker"});
  EXPECT_EQ(table_.Living(Pid(100))->program().comm, "scanned");
  table_.Apply(CommEvent{Tick(61), Pid(100), Tid(100), false, "renamed"});
  EXPECT_EQ(table_.Living(Pid(100))->program().comm, "renamed");
}

TEST_F(ProcessTableTest, SkipsEventsThatTheScanHasSeen) {
  EXPECT_EQ(table_.Apply(Exec(100, 48)), nullptr) << "before its task was read";
  EXPECT_EQ(ObjectOf(100, 1, 5, 60), kOld);
  EXPECT_EQ(table_.Living(Pid(100))->program().comm, "scanned");
}

TEST_F(ProcessTableTest, CountsAnExecBetweenTaskRecordAndScan) {
  const TaskRecord task = Task(300, 3, 8, 40);
  table_.Add(Scanned(300, 3, 50), {Text(kNew)}, &task);
  table_.Apply(Exec(300, 45));
  EXPECT_EQ(ObjectOf(300, 3, 9, 60), kNew);
}

TEST_F(ProcessTableTest, TakesNoExecForAChangeWithinAProgram) {
  const TaskRecord task = Task(300, 3, 8, 40);
  table_.Add(Scanned(300, 3, 45), {Text(kOld)}, &task);
  table_.Add(Scanned(300, 3, 50), {Text(kNew)}, nullptr);
  EXPECT_FALSE(table_.Living(Pid(300))->program().space.shifting().empty());
  table_.Apply(Exec(300, 47));
  EXPECT_TRUE(table_.Living(Pid(300))->program().space.shifting().empty());
}

TEST_F(ProcessTableTest, LearnsTheExecOfAScannedChildFromItsFork) {
  table_.Add(Scanned(300, 45, 50), {Text(kNew)}, nullptr);
  EXPECT_FALSE(table_.Living(Pid(300))->program().exec.has_value());
  table_.Apply(Fork(100, 300, 45));
  EXPECT_EQ(table_.Living(Pid(300))->program().exec, ExecId(5));
  EXPECT_EQ(table_.living_count(), 2U);
}

TEST_F(ProcessTableTest, GoesByTimeWhereExecIdsAreUnknown) {
  table_.Add(Scanned(300, 3, 50), {Text(kOld)}, nullptr);
  table_.Apply(Exec(300, 60))->program().space.Map(Text(kNew), Tick(60));
  EXPECT_EQ(ObjectOf(300, 3, 77, 55), kOld);
  EXPECT_EQ(ObjectOf(300, 3, 78, 61), kNew);
}

TEST_F(ProcessTableTest, NoticesALostExecAtTheNextScan) {
  const TaskRecord task = Task(100, 1, 6, 89);
  table_.Add(Scanned(100, 1, 90), {Text(kNew)}, &task);
  EXPECT_EQ(ObjectOf(100, 1, 5, 60), kOld);
  EXPECT_EQ(ObjectOf(100, 1, 6, 91), kNew);
}

TEST_F(ProcessTableTest, KeepsWhatAnUnreadableProcessHadMapped) {
  ScannedProcess unreadable = Scanned(100, 1, 90);
  unreadable.maps.reset();
  unreadable.threads = {Tid(100), Tid(101)};
  table_.Add(unreadable, {}, nullptr);
  EXPECT_EQ(ObjectOf(100, 1, 5, 91), kOld);
  EXPECT_EQ(table_.Living(Pid(100))->threads.size(), 2U);
  EXPECT_EQ(table_.Living(Pid(100))->scanned_at, Tick(50)) << "events since then are news";
  const TaskRecord task = Task(100, 1, 6, 99);
  unreadable.read_at = Tick(100);
  EXPECT_FALSE(table_.Add(unreadable, {}, &task).program().complete) << "it runs something else";
  EXPECT_EQ(table_.Living(Pid(100))->program().exec, ExecId(6));
}

TEST_F(ProcessTableTest, TakesAScannedPidWithAnotherStartForAnotherProcess) {
  table_.Add(Scanned(100, 80, 90), {Text(kNew)}, nullptr);
  EXPECT_EQ(table_.living_count(), 1U);
  EXPECT_EQ(ObjectOf(100, 1, 5, 60), kOld);
  EXPECT_EQ(ObjectOf(100, 80, 1, 91), kNew);
}

TEST_F(ProcessTableTest, IgnoresTheTaskRecordOfAnotherLife) {
  const TaskRecord task = Task(300, 2, 8, 40);
  table_.Add(Scanned(300, 3, 50), {}, &task);
  EXPECT_FALSE(table_.Living(Pid(300))->program().exec.has_value());
}

TEST_F(ProcessTableTest, EndsWhatAScanDoesNotFind) {
  table_.Apply(Fork(100, 200, 60));
  table_.Apply(Fork(100, 201, 95));
  const auto missing = table_.EndMissing(Tick(90), [](Pid pid) { return pid == Pid(100); });
  EXPECT_THAT(missing, ElementsAre(Pid(200)));
  EXPECT_NE(table_.Living(Pid(201)), nullptr) << "born after the scan began";
}

TEST_F(ProcessTableTest, KeepsEndedProcessesUntilTheHorizon) {
  table_.Apply(Fork(100, 200, 60));
  table_.Apply(Exit(200, 200, 65));
  table_.Forget(Tick(65));
  EXPECT_EQ(ObjectOf(200, 60, 5, 61), kOld);
  table_.Forget(Tick(66));
  EXPECT_EQ(ObjectOf(200, 60, 5, 61), ObjectId(0));
  EXPECT_EQ(ObjectOf(100, 1, 5, 61), kOld);
}

TEST_F(ProcessTableTest, ForgetsProgramsThatEndedBeforeTheHorizon) {
  table_.Apply(Exec(100, 70));
  table_.Forget(Tick(70));
  EXPECT_EQ(ObjectOf(100, 1, 5, 69), kOld);
  table_.Forget(Tick(71));
  EXPECT_EQ(ObjectOf(100, 1, 5, 69), ObjectId(0));
}

TEST_F(ProcessTableTest, BearsAForkBomb) {
  for (uint32_t i = 0; i < 100'000; ++i) {
    table_.Apply(Fork(100, 1000 + i, 60 + i));
    table_.Apply(Exit(1000 + i, 1000 + i, 60 + i));
  }
  EXPECT_EQ(table_.living_count(), 1U);
  EXPECT_EQ(ObjectOf(1000, 60, 5, 60), ObjectId(0)) << "forgotten before its time";
  EXPECT_EQ(ObjectOf(100'999, 100'059, 5, 100'059), kOld);
}

TEST_F(ProcessTableTest, RemembersOthersThroughAUsersForkBomb) {
  ScannedProcess bomber = Scanned(300, 2, 50);
  bomber.user = UserId(1000);
  table_.Add(bomber, {Text(kNew)}, nullptr);
  table_.Apply(Fork(100, 200, 60));
  table_.Apply(Exit(200, 200, 60));
  for (uint32_t i = 0; i < 40'000; ++i) {
    table_.Apply(Fork(300, 1000 + i, 61));
    table_.Apply(Exit(1000 + i, 1000 + i, 61));
  }
  EXPECT_EQ(ObjectOf(200, 60, 5, 60), kOld);
  EXPECT_EQ(table_.shares().all().ended, 16'384U) << "half of what all together may have";
  EXPECT_GT(table_.forgotten_early(), 20'000U);
  for (uint32_t i = 0; i < 10'000; ++i) {
    table_.Apply(Fork(100, 200'000 + i, 62));
    table_.Apply(Exit(200'000 + i, 200'000 + i, 62));
  }
  EXPECT_EQ(ObjectOf(200'000 + 9'999, 62, 5, 62), kOld);
  EXPECT_LE(table_.shares().all().ended, 32'768U);
}

TEST_F(ProcessTableTest, DoesNotMindEventsOfStrangers) {
  EXPECT_FALSE(table_.Apply(Exit(9, 9, 60)));
  EXPECT_EQ(table_.Apply(Exec(9, 60)), nullptr);
  EXPECT_EQ(table_.Apply(Thread(9, 10, 60)), nullptr);
  Process* const orphan = table_.Apply(Fork(9, 11, 60));
  ASSERT_NE(orphan, nullptr);
  EXPECT_FALSE(orphan->program().complete);
  EXPECT_TRUE(table_.Apply(Exec(11, 61))->program().complete);
}

}  // namespace
}  // namespace pyrometer
