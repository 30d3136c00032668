// SPDX-License-Identifier: Apache-2.0
// All of /proc is read in slices, while things happen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;
using ::testing::SizeIs;

// Pids 1001 to 1100 besides, started at tick 7, with /lib/a mapped and in program 3.
class ProcessScanning : public ProcessHistoryTest {
 protected:
  static constexpr uint32_t kFirst = 1001;
  static constexpr uint32_t kLast = 1100;

  ProcessScanning() {
    const std::string maps =
        "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/a") + "\n";
    for (uint32_t pid = kFirst; pid <= kLast; ++pid) machine_.AddProcess(pid, 7, maps);
  }

  std::vector<TaskRecord> Tasks() {
    const MonotonicTime now = Now();
    std::vector<TaskRecord> tasks = {{Pid(100), Tid(100), StartTime(5), ExecId(3), now}};
    for (uint32_t pid = kFirst; pid <= kLast; ++pid) {
      tasks.push_back({Pid(pid), Tid(pid), StartTime(7), ExecId(3), now});
    }
    return tasks;
  }
  void Begin() { ASSERT_TRUE(history_.BeginScan(Tasks()).has_value()); }
  // Of one process each.
  void ContinueBy(int slices) {
    for (int i = 0; i < slices; ++i) ASSERT_TRUE(history_.ContinueScan(0ns));
  }
  void Finish() {
    while (history_.ContinueScan(0ns)) continue;
  }
  bool IsPublished(uint32_t pid) const { return sink_.by_pid.contains(Pid(pid)); }
  std::string WhereIs(uint32_t pid, uint32_t exec) { return PathAt(pid, 7, exec, kStart); }
};

TEST_F(ProcessScanning, ReadsOneProcessAtLeastInEachSlice) {
  Begin();
  for (size_t read = 0; read < 101; ++read) {
    EXPECT_THAT(sink_.by_pid, SizeIs(read));
    EXPECT_EQ(history_.counters().scans, 0U);
    ContinueBy(1);
  }
  EXPECT_FALSE(history_.ContinueScan(0ns));
  EXPECT_EQ(history_.counters().scans, 1U);
  EXPECT_THAT(sink_.living, SizeIs(101));
  EXPECT_FALSE(history_.ContinueScan(0ns)) << "none is under way";
}

TEST_F(ProcessScanning, AppliesEventsInBetween) {
  Scan();
  Begin();
  ContinueBy(10);
  ForkLiving(100, 2000);
  EXPECT_TRUE(IsPublished(2000)) << "long before the end";
  Exec(2000);
  Apply(Mapping(2000, "/lib/b", 'b'));
  EXPECT_EQ(sink_.by_pid[Pid(2000)].exec, ExecId(4));
  machine_.RemoveProcess(kLast);
  Exit(kLast);
  EXPECT_FALSE(IsPublished(kLast));
  Finish();
  EXPECT_TRUE(IsPublished(2000)) << "it was born after the scan began";
  EXPECT_FALSE(IsPublished(kLast));
  EXPECT_EQ(history_.process_count(), 101U);
  EXPECT_FALSE(sink_.living.contains(Pid(kLast)));
  EXPECT_TRUE(sink_.living.contains(Pid(2000)));
}

TEST_F(ProcessScanning, CountsAnExecBeforeAProcessIsRead) {
  Begin();
  ContinueBy(10);
  Exec(kLast);
  machine_.WriteFile(fmt::format("{}/{}/maps", machine_.proc(), kLast),
                     "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b"));
  Finish();
  EXPECT_EQ(sink_.by_pid[Pid(kLast)].exec, ExecId(4));
  EXPECT_EQ(WhereIs(kLast, 4), "/lib/b+0x3000");
}

TEST_F(ProcessScanning, CountsAnExecOfAProcessThatItKnew) {
  Scan();
  Begin();
  Finish();
  Begin();
  ContinueBy(10);
  Exec(kLast);
  Apply(Mapping(kLast, "/lib/b", 'b'));
  machine_.WriteFile(fmt::format("{}/{}/maps", machine_.proc(), kLast),
                     "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b"));
  Finish();
  EXPECT_EQ(sink_.by_pid[Pid(kLast)].exec, ExecId(4));
  EXPECT_EQ(WhereIs(kLast, 4), "/lib/b+0x3000");
}

// Pids kLast, which is known, and 2000, of which no record came.
class ExecWhileTasksAreRead : public ProcessScanning {
 protected:
  ExecWhileTasksAreRead() {
    Begin();
    Finish();
    const std::string maps =
        "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n";
    machine_.AddProcess(2000, 7, maps);
    machine_.WriteFile(fmt::format("{}/{}/maps", machine_.proc(), kLast), maps);
  }

  // They are in program 3 when their records are read, and in the next one before the scan begins.
  // So is kFirst when its record is read.
  void ScanWhileTheyExec() {
    history_.ExpectTasks();
    Exec(kFirst);
    std::vector<TaskRecord> tasks = Tasks();
    tasks[1].exec = ExecId(4);
    tasks.push_back({Pid(2000), Tid(2000), StartTime(7), ExecId(3), Now()});
    Exec(kLast);
    Exec(2000);
    ASSERT_TRUE(history_.BeginScan(tasks).has_value());
    Finish();
  }
};

TEST_F(ExecWhileTasksAreRead, CountsOfAProcessThatWasKnown) {
  ScanWhileTheyExec();
  EXPECT_EQ(sink_.by_pid[Pid(kLast)].exec, ExecId(4));
  EXPECT_EQ(WhereIs(kLast, 4), "/lib/b+0x3000");
}

TEST_F(ExecWhileTasksAreRead, CountsOfAProcessThatWasUnknown) {
  ScanWhileTheyExec();
  EXPECT_EQ(sink_.by_pid[Pid(2000)].exec, ExecId(4));
  EXPECT_EQ(WhereIs(2000, 4), "/lib/b+0x3000");
}

TEST_F(ExecWhileTasksAreRead, CountsOnceIfItCameBeforeTheRecord) {
  ScanWhileTheyExec();
  EXPECT_EQ(sink_.by_pid[Pid(kFirst)].exec, ExecId(4));
}

TEST_F(ProcessScanning, ReadsAParentBeforeItsChild) {
  Begin();
  ContinueBy(10);
  Fork(kLast, 2000);
  EXPECT_EQ(sink_.by_pid[Pid(2000)].exec, ExecId(3)) << "its parent's, which was to be read later";
  EXPECT_TRUE(IsPublished(kLast));
  const uint64_t publishes = history_.counters().publishes;
  Finish();
  EXPECT_EQ(history_.counters().publishes, publishes + 90) << "and is not read again then";
}

TEST_F(ProcessScanning, KeepsAProcessThatItMetAfterItBegan) {
  Begin();
  ContinueBy(10);
  machine_.AddProcess(
      2000, 77, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  Apply(At(Mapping(2000, "/lib/a", 'a'), 0x10000, 0x12000));  // its fork was lost
  Finish();
  EXPECT_EQ(history_.process_count(), 102U);
  EXPECT_EQ(PathAt(2000, 77, 1, kStart), "/lib/b+0x3000");
}

TEST_F(ProcessScanning, ComesToItsEndThoughMoreIsLost) {
  Begin();
  for (int i = 0; i < 101; ++i) {
    Apply(LostEvent{Now(), 12});
    ContinueBy(1);
  }
  EXPECT_FALSE(history_.ContinueScan(0ns));
  EXPECT_EQ(history_.counters().scans, 1U);
  EXPECT_TRUE(history_.TakeLost()) << "the next one is due";
}

TEST_F(ProcessScanning, ReadsThoseLastWhoseUsersHadTheMostRecords) {
  for (uint32_t pid = kFirst; pid < kLast; ++pid) machine_.SetUser(pid, 1000);
  machine_.SetUser(kLast, 1001);
  machine_.SetUser(100, 1001);
  Begin();
  Finish();
  for (int i = 0; i < 100; ++i) Apply(Mapping(kFirst, "/lib/a", 'a'));
  Begin();
  const int before = sink_.publishes;
  sink_.by_pid.clear();
  ContinueBy(2);
  EXPECT_EQ(sink_.publishes, before + 2);
  EXPECT_TRUE(IsPublished(100));
  EXPECT_TRUE(IsPublished(kLast));
}

}  // namespace
}  // namespace pyrometer
