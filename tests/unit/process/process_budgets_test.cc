// SPDX-License-Identifier: Apache-2.0
// One process or user cannot make the history cost more than its share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ProcessBudgets : public ProcessHistoryTest {
 protected:
  // Of pid 100: /lib/a so many times, 4 KiB every 8 KiB from kStart on.
  void SetMappings(uint64_t count) {
    const std::string tail = machine_.MapsTail("/lib/a");
    std::string maps;
    for (uint64_t i = 0; i < count; ++i) {
      maps += fmt::format("{:x}-{:x} r-xp 00001000 {}\n", StartOf(i), StartOf(i) + 0x1000, tail);
    }
    machine_.WriteFile(machine_.proc() + "/100/maps", maps);
  }
  // The same as a burst of events.
  void MapMany(uint32_t pid, uint64_t count) {
    std::vector<ProcessEvent> burst;
    for (uint64_t i = 0; i < count; ++i) {
      burst.push_back(At(Mapping(pid, "/lib/a", 'a'), StartOf(i), StartOf(i) + 0x1000));
    }
    history_.Apply(burst);
  }
  static uint64_t StartOf(uint64_t i) { return kStart + i * 0x2000; }
};

TEST_F(ProcessBudgets, KeepOnlySoManyMappingsOfAProgram) {
  SetMappings(30'000);
  machine_.AddProcess(
      300, 7, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  const std::vector<TaskRecord> tasks = {
      {Pid(100), Tid(100), StartTime(5), ExecId(3), clock_.Now()},
      {Pid(300), Tid(300), StartTime(7), ExecId(4), clock_.Now()}};
  ASSERT_TRUE(history_.Scan(tasks).has_value());
  const std::optional<ProgramMappings> known = history_.MappingsAt(kKey, ExecId(3), Now());
  EXPECT_THAT(known->mappings, SizeIs(4096));
  EXPECT_FALSE(known->complete);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(100))) << "the kernel side could not use it";
  EXPECT_EQ(PathAt(100, 5, 3, StartOf(9)), "/lib/a+0x3000");
  EXPECT_EQ(PathAt(100, 5, 3, StartOf(29'000)), "address");
  EXPECT_THAT(sink_.by_pid[Pid(300)].mappings, SizeIs(1)) << "nobody else is concerned";
  EXPECT_EQ(history_.counters().programs_over_budget, 1U);
  const std::vector<ProcessHistory::Notice> notices = history_.TakeNotices();
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_THAT(notices[0].why, HasSubstr("process 100 (fake)"));
  EXPECT_THAT(history_.TakeNotices(), IsEmpty()) << "once";
}

TEST_F(ProcessBudgets, PassOverNewMappingsOfAProgramThatHasTooMany) {
  Scan();
  Exec(100);
  MapMany(100, kMaxProgramMappings);
  EXPECT_THAT(sink_.by_pid[Pid(100)].mappings, SizeIs(kMaxProgramMappings));
  EXPECT_EQ(history_.counters().programs_over_budget, 0U);
  const int inspections = inspector_->inspections;
  machine_.WriteFile(machine_.root() + "/lib/c", "ELF c");
  Apply(At(Mapping(100, "/lib/c", 'c'), 0x10000, 0x12000));
  EXPECT_FALSE(sink_.by_pid.contains(Pid(100)));
  EXPECT_EQ(PathAt(100, 5, 4, 0x10000), "address") << "unknown, and not mapped nowhere";
  EXPECT_EQ(PathAt(100, 5, 4, StartOf(0)), "/lib/a+0x3000");
  Apply(At(Mapping(100, "/lib/c", 'c'), StartOf(0), StartOf(1)));
  EXPECT_EQ(PathAt(100, 5, 4, StartOf(0)), "address") << "never the name of what was there before";
  EXPECT_EQ(PathAt(100, 5, 4, StartOf(1)), "/lib/a+0x3000");
  EXPECT_EQ(inspector_->inspections, inspections);
  EXPECT_EQ(history_.counters().mappings_passed_over, 2U);
  EXPECT_EQ(history_.counters().programs_over_budget, 1U);
}

TEST_F(ProcessBudgets, HoldForChildrenUntilTheyExec) {
  SetMappings(5'000);
  Scan();
  Fork(100, 200);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(200)));
  Apply(At(Mapping(200, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_EQ(history_.counters().mappings_passed_over, 1U);
  EXPECT_EQ(history_.counters().processes_unreadable, 0U) << "nor is it read again";
  Exec(200);
  Apply(At(Mapping(200, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_THAT(sink_.by_pid[Pid(200)].mappings, SizeIs(1));
}

TEST_F(ProcessBudgets, TrackAProgramAgainThatHasNoLongerTooMuch) {
  SetMappings(4'100);
  Scan();
  SetMappings(4'090);
  history_.Recheck(kKey);
  EXPECT_THAT(sink_.by_pid[Pid(100)].mappings, SizeIs(4'090));
  EXPECT_TRUE(history_.MappingsAt(kKey, ExecId(3), Now())->complete);
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_EQ(PathAt(100, 5, 3, 0x10000), "/lib/b+0x3000");
}

TEST_F(ProcessBudgets, CountALongRecheckAsSeveral) {
  std::string maps;
  for (int i = 0; i < 40'000; ++i)
    maps += "1000-2000 rw-p 00000000 08:01 7 /an/index/of/a/database\n";
  machine_.WriteFile(machine_.proc() + "/100/maps", maps);  // 2 MiB
  Scan();
  for (int i = 0; i < 20; ++i) history_.Recheck(kKey);
  EXPECT_LT(history_.counters().rechecks, 10U);
}

// Maps one file after another, each in a burst of its own.
class ProcessThatMapsMuch : public ProcessBudgets {
 protected:
  void MapOneByOne(uint32_t pid, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      Apply(At(Mapping(pid, "/lib/a", 'a'), StartOf(i), StartOf(i) + 0x1000));
    }
  }
  void PublishAllDue() {
    for (int i = 0; i < 10 && history_.PublishDue(); ++i) clock_.Advance(50ms);
  }
};

TEST_F(ProcessThatMapsMuch, IsPublishedNowAndThen) {
  Scan();
  Exec(100);
  const int before = sink_.publishes;
  MapOneByOne(100, 330);
  EXPECT_EQ(sink_.publishes - before, 3) << "and once after the exec";
  EXPECT_EQ(history_.counters().publishes_put_off, 330U - 3);
  EXPECT_TRUE(history_.PublishDue());
  EXPECT_EQ(sink_.publishes - before, 3) << "it is not due before some time has passed";
  clock_.Advance(50ms);
  EXPECT_FALSE(history_.PublishDue());
  EXPECT_EQ(sink_.publishes - before, 4);
  EXPECT_THAT(sink_.by_pid[Pid(100)].mappings, SizeIs(330));
  const int after = sink_.publishes;
  EXPECT_FALSE(history_.PublishDue());
  EXPECT_EQ(sink_.publishes, after);
}

TEST_F(ProcessThatMapsMuch, IsPublishedAtOnceAfterAnExec) {
  Scan();
  MapOneByOne(100, 30);
  Exec(100);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(100)));
  Apply(Mapping(100, "/lib/b", 'b'));
  EXPECT_THAT(sink_.by_pid[Pid(100)].mappings, SizeIs(1));
}

TEST_F(ProcessThatMapsMuch, IsWithdrawnAtOnceWhenItEnds) {
  Scan();
  MapOneByOne(100, 30);
  Exit(100);
  EXPECT_FALSE(sink_.by_pid.contains(Pid(100)));
  EXPECT_FALSE(history_.PublishDue());
  EXPECT_FALSE(sink_.by_pid.contains(Pid(100)));
}

TEST_F(ProcessThatMapsMuch, IsCorrectedUntilTheKernelSideIsTold) {
  Scan();
  Exec(100);
  constexpr ExecId kExec(4);
  Apply(Mapping(100, "/lib/a", 'a'));
  for (uint64_t i = 1; i <= 2; ++i) {
    Apply(At(Mapping(100, "/lib/b", 'b'), StartOf(i), StartOf(i) + 0x1000));
  }
  ASSERT_EQ(history_.counters().publishes_put_off, 0U);
  const MappingEvent event = Mapping(100, "/lib/b", 'b');
  Apply(event);
  ASSERT_EQ(history_.counters().publishes_put_off, 1U);
  const ObjectId in_b = history_.MappingsAt(kKey, kExec, Now())->mappings[0].object;
  const ObjectId in_a =
      history_.MappingsAt(kKey, kExec, Before(event.when, 1ns))->mappings[0].object;
  ASSERT_NE(in_a, in_b);
  const Frame frame_in_a = Frame::Object(in_a, ElfAddress(0x3010));
  const Frame frame_in_b = Frame::Object(in_b, ElfAddress(0x3010));
  const MonotonicTime later = After(event.when, 1s);
  EXPECT_EQ(Resolved(kKey, kExec, frame_in_a, later), frame_in_b);
  PublishAllDue();
  EXPECT_EQ(Resolved(kKey, kExec, frame_in_a, After(later, 1s)), frame_in_a);
}

}  // namespace
}  // namespace pyrometer
