// SPDX-License-Identifier: Apache-2.0
// What is published as mapped executable, read again, and told of a moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

TEST_F(ProcessHistoryTest, PublishesAllThatIsExecutable) {
  Scan();
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec_pages.count, 2U);
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x13000));
  Apply(At(Mapping(100, "//anon", 0), 0x20000, 0x21000));
  MappingEvent jit = At(Mapping(100, "//anon", 0), 0x30000, 0x40000);
  jit.range.writable = true;
  Apply(jit);
  const RecordingSink::Published& published = sink_.by_pid[Pid(100)];
  EXPECT_THAT(StartsOf(published), ElementsAre(0x10000, 0x12000, 0x20000, 0x30000, kStart))
      << "/lib/b has two pages in a segment";
  EXPECT_EQ(published.exec_pages.count, 2U + 3U + 1U) << "what is writable does not count";
  EXPECT_EQ(published.mappings[3].mapping.object, ObjectId(0));
}

TEST_F(ProcessHistoryTest, CountsWholeMappingsAsProcShowsThem) {
  machine_.RemoveProcess(100);
  machine_.AddProcess(100, 5,
                      "1000-5000 r-xp 00001000 " + machine_.MapsTail("/lib/a") +
                          "\n5000-6000 rwxp 00005000 " + machine_.MapsTail("/lib/a") +
                          "\n9000-a000 --xp 00000000 00:00 0\n"
                          "7ffe0000-7fff0000 r-xp 00000000 00:00 0 [stack]\n"
                          "7fff0000-7fff2000 r-xp 00000000 00:00 0 [vdso]\n");
  Scan();
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec_pages.count, 4U + 1U + 2U);
}

TEST_F(ProcessHistoryTest, PublishesAPlaceWhoseContentChangedAsShifting) {
  Scan();
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_THAT(ShiftingOf(100), IsEmpty());
  Apply(At(Mapping(100, "/lib/a", 'a'), 0x11000, 0x12000));
  EXPECT_THAT(ShiftingOf(100), ElementsAre(0x11000));
  EXPECT_THAT(StartsOf(sink_.by_pid[Pid(100)]), ElementsAre(0x10000, 0x11000, kStart));
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_THAT(ShiftingOf(100), ElementsAre(0x11000)) << "from then on";
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec_pages.count, 4U);
  Exec(100);
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_THAT(ShiftingOf(100), IsEmpty()) << "another program";
}

TEST_F(ProcessHistoryTest, FindsAtARecheckWhatWasUnmapped) {
  Scan();
  const MonotonicTime before = Now();
  MappingEvent event = At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000);
  Apply(event);
  history_.Recheck(kKey);  // it is not in /proc
  const RecordingSink::Published& published = sink_.by_pid[Pid(100)];
  EXPECT_THAT(StartsOf(published), ElementsAre(kStart));
  EXPECT_EQ(published.exec_pages.count, 2U);
  EXPECT_EQ(history_.counters().rechecks_changed, 1U);
  EXPECT_EQ(history_.MappingsAt(kKey, ExecId(3), before)->exec_pages, 2U);
  EXPECT_EQ(history_.MappingsAt(kKey, ExecId(3), event.when)->exec_pages, 4U);
  EXPECT_EQ(history_.MappingsAt(kKey, ExecId(3), Now())->exec_pages, 2U);
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_THAT(ShiftingOf(100), ElementsAre(0x10000)) << "it may go unnoticed once more";
}

TEST_F(ProcessHistoryTest, CorrectsWhatTheKernelSideNamedBeforeItWasTold) {
  Scan();
  const Frame in_a = FrameAt(100, 5, 3, kStart + 0x10);
  const MonotonicTime before = Now();
  const MappingEvent event = Mapping(100, "/lib/b", 'b');
  Apply(event);
  const Frame in_b = FrameAt(100, 5, 3, kStart + 0x10);
  EXPECT_NE(in_a, in_b);
  EXPECT_EQ(Resolved(kKey, ExecId(3), in_a, before), in_a);
  EXPECT_EQ(Resolved(kKey, ExecId(3), in_a, event.when), in_b);
  EXPECT_EQ(history_.counters().outdated_frames, 1U);
  const MonotonicTime told(Now().value() + 1'000'000'000);
  EXPECT_EQ(Resolved(kKey, ExecId(3), in_a, told), in_a) << "it is somewhere else now";
}

TEST_F(ProcessHistoryTest, PublishesAgainWhatARecheckConfirms) {
  Scan();
  const int before = sink_.publishes;
  history_.Recheck(kKey);
  EXPECT_EQ(sink_.publishes, before + 1);
  EXPECT_EQ(history_.counters().rechecks, 1U);
  EXPECT_EQ(history_.counters().rechecks_changed, 0U);
  EXPECT_THAT(ShiftingOf(100), IsEmpty());
}

class ProcessWithMadeCode : public ProcessHistoryTest {
 protected:
  // A file of 16 pages, one of 2, and so many pages of anonymous code.
  void SetCode(int pages, bool small_file = true) {
    std::string maps =
        "7f0000000000-7f0000010000 r-xp 00008000 " + machine_.MapsTail("/lib/a") + "\n";
    if (small_file) {
      maps += "7f0000020000-7f0000022000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n";
    }
    if (pages > 0)
      maps += fmt::format("{:x}-{:x} r-xp 00000000 00:00 0\n", kMade, kMade + pages * 4096);
    machine_.WriteFile(machine_.proc() + "/100/maps", maps);
  }
  const RecordingSink::Published& Rechecked() {
    history_.Recheck(kKey);
    return sink_.by_pid[Pid(100)];
  }

  // Until that is known as its habit.
  void ComeAndGo(int pages) {
    for (int i = 0; i < 3; ++i) {
      SetCode(pages);
      history_.Recheck(kKey);
      SetCode(0);
      history_.Recheck(kKey);
    }
  }

  static constexpr uint64_t kMade = 0x7f0000040000;
};

TEST_F(ProcessWithMadeCode, MayHaveAsMuchMoreOrLessAsItHadBefore) {
  SetCode(0);
  Scan();
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec_pages.slack, 0U);
  SetCode(3);
  EXPECT_EQ(Rechecked().exec_pages.slack, 0U) << "once is no habit";
  EXPECT_THAT(ShiftingOf(100), IsEmpty());
  ComeAndGo(3);
  SetCode(3);
  EXPECT_EQ(Rechecked().exec_pages.count, 21U);
  EXPECT_EQ(Rechecked().exec_pages.slack, 3U);
  EXPECT_THAT(ShiftingOf(100), ElementsAre(0x7f0000020000)) << "its end would not show";
  SetCode(1);
  EXPECT_EQ(Rechecked().exec_pages.count, 19U);
  EXPECT_EQ(Rechecked().exec_pages.slack, 3U);
}

TEST_F(ProcessWithMadeCode, NeverLosesItsExecutable) {
  SetCode(0);
  Scan();
  machine_.WriteFile(
      machine_.proc() + "/100/stat",
      fmt::format("100 (fake) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 {} 0\n",
                  0x7f0000021000));
  ComeAndGo(3);
  EXPECT_EQ(Rechecked().exec_pages.slack, 3U);
  EXPECT_THAT(ShiftingOf(100), IsEmpty());
}

TEST_F(ProcessWithMadeCode, IsNotTrustedMoreWhenAFileHasGone) {
  SetCode(0);
  Scan();
  for (int i = 0; i < 4; ++i) {
    SetCode(2, false);
    EXPECT_EQ(Rechecked().exec_pages.slack, 0U);
    SetCode(0);
    EXPECT_EQ(Rechecked().exec_pages.slack, 0U);
  }
}

TEST_F(ProcessWithMadeCode, IsNotTrustedMoreWhenMuchComesAndGoes) {
  SetCode(0);
  Scan();
  ComeAndGo(17);
  EXPECT_EQ(Rechecked().exec_pages.slack, 0U);
}

TEST_F(ProcessHistoryTest, RefusesTooManyRechecksOfOneProcess) {
  machine_.AddProcess(300, 7, "");
  Scan();
  for (int i = 0; i < 100; ++i) history_.Recheck(kKey);
  EXPECT_THAT(history_.counters().rechecks, AllOf(Ge(20U), Le(30U)));
  EXPECT_EQ(history_.counters().rechecks + history_.counters().rechecks_refused, 100U);
  const uint64_t before = history_.counters().rechecks;
  history_.Recheck({Pid(300), StartTime(7)});
  EXPECT_EQ(history_.counters().rechecks, before + 1);
}

TEST_F(ProcessHistoryTest, DoesNotRecheckAnotherLifeOfThePid) {
  Scan();
  history_.Recheck({Pid(100), StartTime(50)});
  history_.Recheck({Pid(999), StartTime(5)});
  EXPECT_EQ(history_.counters().rechecks, 0U);
  machine_.RemoveProcess(100);
  machine_.AddProcess(100, 50, "1000-2000 r-xp 00000000 00:00 0\n");
  history_.Recheck(kKey);
  EXPECT_EQ(history_.counters().rechecks_changed, 0U);
  EXPECT_EQ(PathAt(100, 5, 3, kStart), "/lib/a+0x3000");
}

TEST_F(ProcessHistoryTest, ReadsAnUnknownProcessThatSomebodyAsksFor) {
  Scan();
  const ProcessKey key{Pid(300), StartTime(77)};
  EXPECT_FALSE(history_.MappingsAt(key, ExecId(1), Now()).has_value());
  machine_.AddProcess(
      300, 77, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  const std::optional<ProgramMappings> found = history_.MappingsAt(key, ExecId(1), Now());
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->complete);
  EXPECT_EQ(found->exec_pages, 2U);
  ASSERT_THAT(found->mappings, SizeIs(1));
  EXPECT_EQ(found->mappings[0].start, Address(kStart));
  EXPECT_FALSE(history_.MappingsAt({Pid(300), StartTime(99)}, ExecId(1), Now()).has_value());
}

TEST_F(ProcessHistoryTest, SaysWhenTheBeginningsOfAProgramWereMissed) {
  Fork(999, 300);  // and nobody knows the parent
  const ProcessKey key{Pid(300), BootClock::Now().ToStartTime(last_)};
  const std::optional<ProgramMappings> found = history_.MappingsAt(key, ExecId(1), Now());
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->complete);
}

}  // namespace
}  // namespace pyrometer
