// SPDX-License-Identifier: Apache-2.0
// One user's processes cannot make the history forget, or put off, those of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Pid 300 is user 1000's, who is greedy; pid 100 is user 1001's. A process takes some 1 KiB, and
// each mapping 48 bytes.
class ProcessShares : public ProcessHistoryTest {
 protected:
  static constexpr size_t kBytes = size_t{1} << 20;
  static constexpr ProcessKey kGreedy{Pid(300), StartTime(7)};

  ProcessShares() : ProcessHistoryTest(nullptr, {.bytes = kBytes, .ended = 200}) {
    machine_.SetUser(100, 1001);
    AddProcess(300, 7, 1000);
  }
  void AddProcess(uint32_t pid, uint64_t start, uint32_t user) {
    machine_.AddProcess(
        pid, start,
        "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
    machine_.SetUser(pid, user);
  }
  void ScanBoth() {
    const MonotonicTime now = clock_.Now();
    const std::vector<TaskRecord> tasks = {{Pid(100), Tid(100), StartTime(5), ExecId(3), now},
                                           {Pid(300), Tid(300), StartTime(7), ExecId(4), now}};
    ASSERT_TRUE(history_.Scan(tasks).has_value());
  }
  // Whoever reads it is counted.
  void MakeUnreadable(uint32_t pid) const {
    std::filesystem::remove(fmt::format("{}/{}/stat", machine_.proc(), pid));
    std::filesystem::create_directories(fmt::format("{}/{}/stat", machine_.proc(), pid));
  }
  static uint64_t StartOf(uint64_t i) { return kStart + i * 0x2000; }
  void MapMany(uint32_t pid, uint64_t first, uint64_t count) {
    std::vector<ProcessEvent> burst;
    for (uint64_t i = first; i < first + count; ++i) {
      burst.push_back(At(Mapping(pid, "/lib/a", 'a'), StartOf(i), StartOf(i) + 0x1000));
    }
    history_.Apply(burst);
  }
  // With 1,000 mappings of their own each, until there is no more room.
  std::vector<uint32_t> FillWithLiving(uint32_t first, uint32_t parent = 300) {
    std::vector<uint32_t> pids;
    const uint64_t before = counters().mappings_passed_over;
    for (uint32_t pid = first; counters().mappings_passed_over == before; ++pid) {
      Fork(parent, pid);
      Exec(pid);
      MapMany(pid, 0, 1000);
      pids.push_back(pid);
      if (pids.size() > 100) break;
    }
    return pids;
  }
  ProcessCounters counters() const { return history_.counters(); }
};

TEST_F(ProcessShares, PassOverNewMappingsOfAUserWhoHasTooMany) {
  ScanBoth();
  const std::vector<uint32_t> living = FillWithLiving(1000);
  EXPECT_GT(living.size(), 4U);
  EXPECT_LT(living.size(), 12U) << "each takes at least 48 KB of 512 KiB";
  EXPECT_LE(counters().remembered_bytes, kBytes / 2 + 10'000);
  const uint64_t passed_over = counters().mappings_passed_over;
  MapMany(living[0], 2000, 10);
  EXPECT_EQ(counters().mappings_passed_over, passed_over + 10);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(living[0]))) << "the kernel side could not use it";
  MapMany(100, 10, 2000);
  EXPECT_THAT(sink_.by_pid[Pid(100)].mappings, SizeIs(2001)) << "another user's has room";
  EXPECT_EQ(counters().mappings_passed_over, passed_over + 10);
  EXPECT_EQ(counters().users_over_share, 1U);
  const std::vector<ProcessHistory::Notice> notices = history_.TakeNotices();
  ASSERT_THAT(notices, SizeIs(1)) << "once, and not for each process";
  EXPECT_THAT(notices[0].why, HasSubstr("user 1000"));
}

TEST_F(ProcessShares, PassOverNewProcessesOfAUserWhoHasTooMany) {
  ScanBoth();
  FillWithLiving(1000);
  const uint64_t bytes = counters().remembered_bytes;
  for (uint32_t pid = 2980; pid < 3000; ++pid) MakeUnreadable(pid);
  for (uint32_t pid = 2000; pid < 3000; ++pid) {
    Fork(300, pid);
    Fork(pid, pid + 2000);
    MapMany(pid, 0, 1);
    Exec(pid);
  }
  EXPECT_LE(counters().remembered_bytes, bytes + 10'000);
  EXPECT_GT(counters().processes_passed_over, 1990U);
  EXPECT_TRUE(sink_.withdrawn.contains(Pid(2999))) << "the kernel side took it for its parent";
  EXPECT_EQ(counters().processes_unreadable, 0U) << "nor is it looked for in /proc";
  ForkLiving(100, 5000);
  EXPECT_THAT(sink_.by_pid[Pid(5000)].mappings, SizeIs(1));
}

TEST_F(ProcessShares, TrackAProcessAgainThatExecsWhenThereIsRoom) {
  ScanBoth();
  const std::vector<uint32_t> living = FillWithLiving(1000);
  uint32_t pid = 2000;
  while (counters().processes_passed_over == 0 && pid < 3000) Fork(300, ++pid);
  for (const uint32_t other : living) Exit(other);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(pid)));
  AddProcess(pid, 70, 1000);
  Exec(pid);
  EXPECT_EQ(sink_.by_pid[Pid(pid)].exec, ExecId(5)) << "one more than its parent's";
  EXPECT_THAT(sink_.by_pid[Pid(pid)].mappings, SizeIs(1));
}

// User 1000 has no more room; pid 300 can be read all the time.
class ProcessOfAFullUser : public ProcessShares {
 protected:
  static constexpr uint64_t kOther = kStart + 0x10'0000;
  static constexpr uint64_t kThird = kStart + 0x20'0000;

  ProcessOfAFullUser() {
    SetMappings({Line(kStart, "r-xp", "/lib/b"), Line(kOther, "r-xp", "/lib/b")});
    ScanBoth();
    living_ = FillWithLiving(1000);
    for (const uint32_t pid : living_) MakeUnreadable(pid);  // they live on when /proc is read
  }
  std::string Line(uint64_t start, const std::string& rights, const std::string& path) const {
    return fmt::format("{:x}-{:x} {} 00001000 {}\n", start, start + 0x2000, rights,
                       machine_.MapsTail(path));
  }
  void SetMappings(const std::vector<std::string>& lines) const {
    std::string maps;
    for (const std::string& line : lines) maps += line;
    machine_.WriteFile(machine_.proc() + "/300/maps", maps);
  }
  std::vector<uint64_t> Published() { return StartsOf(sink_.by_pid[Pid(300)]); }
  std::string WhereIs(uint64_t address) { return PathAt(300, 7, 4, address); }

  std::vector<uint32_t> living_;
};

TEST_F(ProcessOfAFullUser, KeepsWhatItHasWhenItIsReadAgain) {
  const uint64_t over_budget = counters().programs_over_budget;
  history_.Recheck(kGreedy);
  ScanBoth();
  ScanBoth();
  EXPECT_THAT(Published(), ElementsAre(kStart, kOther));
  EXPECT_EQ(WhereIs(kOther), "/lib/b+0x3000");
  EXPECT_EQ(counters().programs_over_budget, over_budget);
}

TEST_F(ProcessOfAFullUser, LosesOnlyWhatIsGoneWhenItIsReadAgain) {
  SetMappings({Line(kStart, "r-xp", "/lib/b"), Line(kThird, "r-xp", "/lib/b")});
  history_.Recheck(kGreedy);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(300))) << "the kernel side could not use it";
  EXPECT_EQ(WhereIs(kStart), "/lib/b+0x3000");
  EXPECT_EQ(WhereIs(kOther), "address");
  EXPECT_EQ(WhereIs(kThird), "address") << "there was no room for it";
  SetMappings({Line(kStart, "r-xp", "/lib/b")});
  history_.Recheck(kGreedy);
  EXPECT_THAT(Published(), ElementsAre(kStart)) << "that is all it has";
}

TEST_F(ProcessOfAFullUser, IsTrackedAgainWhenThereIsRoom) {
  const std::string written = Line(kThird, "rwxp", "/lib/b");
  SetMappings({Line(kStart, "r-xp", "/lib/b"), Line(kOther, "r-xp", "/lib/b"), written});
  MappingEvent event = At(Mapping(300, "/lib/b", 'b'), kThird, kThird + 0x2000);
  event.range.writable = true;  // the kernel counts no pages of it, and nobody asks for a recheck
  Apply(event);
  EXPECT_EQ(WhereIs(kThird), "address");
  EXPECT_FALSE(sink_.by_pid.contains(Pid(300)));
  for (const uint32_t pid : living_) Exit(pid);
  ForkLiving(300, 400);
  std::filesystem::copy_file(machine_.proc() + "/300/maps", machine_.proc() + "/400/maps",
                             std::filesystem::copy_options::overwrite_existing);
  WhereIs(kThird);
  EXPECT_THAT(Published(), ElementsAre(kStart, kOther, kThird));
  EXPECT_EQ(WhereIs(kThird), "/lib/b+0x3000");
  EXPECT_THAT(sink_.by_pid[Pid(400)].mappings, SizeIs(3)) << "its child lacked it, too";
}

TEST_F(ProcessOfAFullUser, IsNotReadAgainWithAllOthersWhileItIsPassedOver) {
  for (uint32_t pid = 2000; pid < 2010; ++pid) AddProcess(pid, 7, 1000);
  ScanBoth();
  EXPECT_EQ(counters().processes_passed_over, 10U);
  for (uint32_t pid = 2000; pid < 2010; ++pid) MakeUnreadable(pid);
  const uint64_t unreadable = counters().processes_unreadable;
  ScanBoth();
  EXPECT_EQ(counters().processes_unreadable, unreadable + living_.size());
  EXPECT_TRUE(sink_.living.contains(Pid(2000))) << "it was not found gone";
}

TEST_F(ProcessOfAFullUser, IsReadAfterOthersOnceItWasPassedOver) {
  for (uint32_t pid = 2000; pid < 2010; ++pid) AddProcess(pid, 7, 1000);
  ScanBoth();
  for (const uint32_t pid : living_) Exit(pid);
  for (int i = 0; i < 100; ++i) Apply(Mapping(300, "/lib/b", 'b'));
  AddProcess(5000, 7, 1001);
  ASSERT_TRUE(history_.BeginScan({}).has_value());
  history_.ContinueScan(0ns);
  history_.ContinueScan(0ns);
  EXPECT_TRUE(history_.MappingsAt({Pid(5000), StartTime(7)}, ExecId(1), Now()).has_value());
  EXPECT_EQ(history_.process_count(), 3U);
}

// Pid 300 has 4,000 mappings, and another process of the user's has more.
TEST_F(ProcessShares, AreNamedWhereAnotherUserHasLeftLess) {
  std::string maps;
  const auto map = [&](uint64_t i) {
    maps += fmt::format("{:x}-{:x} r-xp 00001000 {}\n", StartOf(i), StartOf(i) + 0x1000,
                        machine_.MapsTail("/lib/a"));
  };
  ScanBoth();
  Fork(300, 400);
  Exec(400);
  MapMany(400, 0, 4000);
  for (uint64_t i = 0; i < 4000; ++i) map(i);
  machine_.WriteFile(machine_.proc() + "/300/maps", maps);
  history_.Recheck(kGreedy);
  const uint64_t bytes = counters().remembered_bytes;
  for (uint64_t i = 1; bytes + counters().remembered_bytes <= kBytes + 20'000; ++i) {
    MapMany(100, 100 * i, 100);
  }
  map(5000);
  machine_.WriteFile(machine_.proc() + "/300/maps", maps);
  history_.Recheck(kGreedy);
  EXPECT_EQ(counters().users_over_share, 1U);
  const std::vector<ProcessHistory::Notice> notices = history_.TakeNotices();
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_THAT(notices[0].why, HasSubstr("user 1000"));
  EXPECT_EQ(PathAt(300, 7, 4, StartOf(3999)), "/lib/a+0x3000");
}

// Pid 2000 is passed over, until there is room.
class ProcessThatWasPassedOver : public ProcessShares {
 protected:
  void ScanAll(std::optional<ExecId> exec = std::nullopt) {
    tasks_ = {{Pid(100), Tid(100), StartTime(5), ExecId(3), Now()},
              {Pid(300), Tid(300), StartTime(7), ExecId(4), Now()}};
    if (exec) tasks_.push_back({Pid(2000), Tid(2000), StartTime(7), *exec, Now()});
    between_ = Now();
    ASSERT_TRUE(history_.Scan(tasks_).has_value());
  }
  // With that exec id, if it is known.
  void PassOver(std::optional<ExecId> exec) {
    ScanAll();
    living_ = FillWithLiving(1000);
    AddProcess(2000, 7, 1000);
    ScanAll(exec);
    ASSERT_FALSE(sink_.by_pid.contains(Pid(2000)));
  }
  void MakeRoom() {
    for (const uint32_t pid : living_) Exit(pid);
  }

  std::vector<TaskRecord> tasks_;  // of the last scan
  MonotonicTime between_;          // after its tasks were read, and before /proc was
  std::vector<uint32_t> living_;
};

TEST_F(ProcessThatWasPassedOver, HasTheExecThatCameBeforeItWasRead) {
  PassOver(ExecId(8));
  MakeRoom();
  Apply(CommEvent{between_, Pid(2000), Tid(2000), true, "new"});
  EXPECT_EQ(sink_.by_pid[Pid(2000)].exec, ExecId(9));
}

TEST_F(ProcessThatWasPassedOver, LearnsItsExecIdFromTheNextScan) {
  PassOver(std::nullopt);
  MakeRoom();
  tasks_.push_back({Pid(2000), Tid(2000), StartTime(7), ExecId(8), Now()});
  ASSERT_TRUE(history_.BeginScan(tasks_).has_value());
  Exec(2000);
  EXPECT_EQ(sink_.by_pid[Pid(2000)].exec, ExecId(9));
}

TEST_F(ProcessThatWasPassedOver, KeepsItsExecIdWhereNoTaskCouldBeRead) {
  PassOver(ExecId(8));
  ScanAll();
  MakeRoom();
  ScanAll();
  EXPECT_EQ(sink_.by_pid[Pid(2000)].exec, ExecId(8));
}

TEST_F(ProcessShares, ForgetTheLongestEndedOfThatUser) {
  ScanBoth();
  Fork(100, 200);
  const StartTime start = BootClock::Now().ToStartTime(last_);
  Exit(200);
  for (uint32_t pid = 1000; pid < 1030; ++pid) {
    Fork(300, pid);
    Exec(pid);
    MapMany(pid, 0, 1000);
    Exit(pid);
  }
  EXPECT_LE(counters().remembered_bytes, kBytes / 2 + 60'000);
  EXPECT_GT(counters().processes_forgotten_early, 15U);
  EXPECT_EQ(counters().mappings_passed_over, 0U) << "those that live have room";
  EXPECT_EQ(PathAt(200, start.value(), 3, kStart), "/lib/a+0x3000");
}

TEST_F(ProcessShares, ForgetEndedProgramsOfOneThatExecsWithoutEnd) {
  ScanBoth();
  for (int i = 0; i < 50; ++i) {
    Exec(300);
    MapMany(300, 0, 1000);
  }
  EXPECT_LE(counters().remembered_bytes, kBytes / 2 + 60'000);
  EXPECT_THAT(sink_.by_pid[Pid(300)].mappings, SizeIs(1000));
}

TEST_F(ProcessShares, LearnWhoAProcessOfRootHasBecome) {
  machine_.SetUser(300, 0);  // a login, say
  ScanBoth();
  ForkLiving(300, 400);
  machine_.SetUser(400, 1000);
  for (uint32_t pid = 1000; pid < 1200; ++pid) {
    Fork(400, pid);
    Exit(pid);
  }
  Fork(300, 500);
  const StartTime start = BootClock::Now().ToStartTime(last_);
  Exit(500);
  for (uint32_t pid = 1200; pid < 1500; ++pid) {
    Fork(400, pid);
    Exit(pid);
  }
  EXPECT_EQ(PathAt(500, start.value(), 4, kStart), "/lib/b+0x3000")
      << "root's share is not used up by user 1000";
}

// Root, here pid 300, has used up its share; pid 400 was its child and has become user 1000's
// since.
class ProcessOfFullRoot : public ProcessShares {
 protected:
  ProcessOfFullRoot() {
    machine_.SetUser(300, 0);
    ScanBoth();
    living_ = FillWithLiving(1000);
    ForkWithMaps(300, 400);
    machine_.SetUser(400, 1000);
  }
  void ForkWithMaps(uint32_t parent, uint32_t pid) {
    ForkLiving(parent, pid);
    machine_.WriteFile(
        fmt::format("{}/{}/maps", machine_.proc(), pid),
        "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  }

  std::vector<uint32_t> living_;  // root's
};

TEST_F(ProcessOfFullRoot, IsTrackedFromItsExecOnAsAnothers) {
  EXPECT_FALSE(sink_.by_pid.contains(Pid(400)));
  Exec(400);
  EXPECT_THAT(sink_.by_pid[Pid(400)].mappings, SizeIs(1)) << "user 1000 has room";
  ForkWithMaps(400, 401);
  EXPECT_THAT(sink_.by_pid[Pid(401)].mappings, SizeIs(1));
}

TEST_F(ProcessOfFullRoot, IsTrackedFromItsFirstSampleOnAsAnothers) {
  const ProcessKey key{Pid(400), BootClock::Now().ToStartTime(last_)};
  const std::optional<ProgramMappings> mappings = history_.MappingsAt(key, ExecId(4), Now());
  ASSERT_TRUE(mappings.has_value());
  EXPECT_THAT(mappings->mappings, SizeIs(1));
}

TEST_F(ProcessOfFullRoot, IsStillPassedOverIfItIsRoots) {
  machine_.SetUser(400, 0);
  Exec(400);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(400)));
}

TEST_F(ProcessOfFullRoot, HasChildrenOfItsUser) {
  FillWithLiving(5000, 100);
  machine_.SetUser(400, 1001);
  Exec(400);
  ASSERT_FALSE(sink_.by_pid.contains(Pid(400))) << "user 1001 has no room either";
  for (const uint32_t pid : living_) Exit(pid);
  FillWithLiving(6000, 100);
  const uint64_t passed_over = counters().processes_passed_over;
  Fork(400, 401);
  EXPECT_EQ(counters().processes_passed_over, passed_over + 1) << "though root has room";
}

TEST_F(ProcessShares, OfRechecksLeaveThoseOfOthersAlone) {
  std::vector<ProcessKey> many;
  for (uint32_t pid = 1000; pid < 1100; ++pid) {
    AddProcess(pid, 7, 1000);
    many.push_back({Pid(pid), StartTime(7)});
  }
  ScanBoth();
  for (int round = 0; round < 20; ++round) {
    for (const ProcessKey& process : many) history_.Recheck(process);
  }
  EXPECT_GT(counters().rechecks_refused, 0U) << "though none had more than 20";
  const uint64_t before = counters().rechecks;
  history_.Recheck(kKey);
  EXPECT_EQ(counters().rechecks, before + 1);
}

TEST_F(ProcessShares, HoldWhenAllOfProcIsReadAgain) {
  ScanBoth();
  FillWithLiving(1000);
  for (uint32_t pid = 2000; pid < 2100; ++pid) AddProcess(pid, 7, 1000);
  ScanBoth();
  EXPECT_LE(counters().remembered_bytes, kBytes / 2 + 60'000);
  ScanBoth();
  EXPECT_TRUE(sink_.by_pid.contains(Pid(100)));
}

}  // namespace
}  // namespace pyrometer
