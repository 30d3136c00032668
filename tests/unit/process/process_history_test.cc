// SPDX-License-Identifier: Apache-2.0
#include "process/process_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/clock.h"
#include "base/foreign_file.h"
#include "tests/unit/process/fake_machine.h"

namespace pyrometer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

constexpr uint64_t kStart = 0x7f00'0000'0000;
constexpr ProcessKey kKey{Pid(100), StartTime(5)};

// A machine with one process: pid 100, which has /lib/a mapped at kStart, file offset 0x1000.
class ProcessHistoryTest : public testing::Test {
 protected:
  ProcessHistoryTest() {
    machine_.WriteFile(machine_.root() + "/lib/a", "ELF a");
    machine_.WriteFile(machine_.root() + "/lib/b", "ELF b");
    machine_.AddProcess(
        100, 5, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/a") + "\n");
  }

  void Scan() {
    const TaskRecord task{Pid(100), Tid(100), StartTime(5), ExecId(3), MonotonicNow()};
    ASSERT_TRUE(history_.Scan(std::span(&task, 1)).has_value());
  }

  // Events happen in this order, after everything before.
  MonotonicTime Now() {
    return last_ = MonotonicTime(std::max(MonotonicNow().value(), last_.value() + 1));
  }
  void Apply(ProcessEvent event) { history_.Apply(std::span(&event, 1)); }
  void Fork(uint32_t parent, uint32_t pid) {
    Apply(ForkEvent{Now(), Pid(pid), Tid(pid), Pid(parent)});
  }
  void Exec(uint32_t pid) { Apply(CommEvent{Now(), Pid(pid), Tid(pid), true, "new"}); }
  void Exit(uint32_t pid) { Apply(ExitEvent{Now(), Pid(pid), Tid(pid)}); }
  MappingEvent Mapping(uint32_t pid, const std::string& path, char build_id) {
    MappingEvent event;
    event.when = Now();
    event.pid = Pid(pid);
    event.range = {Address(kStart), Address(kStart + 0x2000), FileOffset(0x1000)};
    event.file.path = path;
    if (build_id != 0) event.file.build_id = FakeBuildId(build_id);
    return event;
  }
  static MappingEvent At(MappingEvent event, uint64_t start, uint64_t end) {
    event.range.start = Address(start);
    event.range.end = Address(end);
    return event;
  }
  // A child that lives on, with its /proc directory.
  void ForkLiving(uint32_t parent, uint32_t pid) {
    const ForkEvent fork{Now(), Pid(pid), Tid(pid), Pid(parent)};
    machine_.AddProcess(pid, BootClock::Now().ToStartTime(fork.when).value(), "");
    Apply(fork);
  }

  Frame FrameAt(uint32_t pid, uint64_t start, uint32_t exec, uint64_t address) {
    const ProcessKey process{Pid(pid), StartTime(start)};
    return Resolved(process, ExecId(exec), Frame::User(Address(address)), Now());
  }
  Frame Resolved(const ProcessKey& process, ExecId exec, Frame frame, MonotonicTime when) {
    Window window;
    window.end = when;
    window.frames = {frame};
    window.stacks = {Stack{0, 0, 1, StackEnd::kComplete}};
    Sample sample;
    sample.process = process;
    sample.exec = exec;
    sample.first_seen = when;
    sample.last_seen = when;
    window.samples = {sample};
    window = history_.Resolve(std::move(window));
    return window.FramesOf(window.stacks[window.samples[0].stack])[0];
  }
  std::string PathAt(uint32_t pid, uint64_t start, uint32_t exec, uint64_t address) {
    const Frame frame = FrameAt(pid, start, exec, address);
    if (frame.kind() != Frame::Kind::kObject) return "address";
    return fmt::format("{}+{:#x}", history_.Object(frame.object())->path, frame.offset().value());
  }

  static std::vector<uint64_t> StartsOf(const RecordingSink::Published& published) {
    std::vector<uint64_t> starts;
    for (const PublishedMapping& p : published.mappings) starts.push_back(p.mapping.start.value());
    return starts;
  }
  std::vector<uint64_t> ShiftingOf(uint32_t pid) {
    std::vector<uint64_t> starts;
    for (const auto& [mapping, shifting] : sink_.by_pid[Pid(pid)].mappings) {
      if (shifting) starts.push_back(mapping.start.value());
    }
    return starts;
  }

  FakeMachine machine_;
  FakeInspector inspector_;
  RecordingSink sink_;
  ProcessHistory history_{{.procfs = machine_.procfs()}, inspector_, sink_};
  MonotonicTime last_;
};

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

TEST_F(ProcessHistoryTest, PublishesAllThatIsExecutable) {
  Scan();
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec_pages, 2U);
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x13000));
  Apply(At(Mapping(100, "//anon", 0), 0x20000, 0x21000));
  MappingEvent jit = At(Mapping(100, "//anon", 0), 0x30000, 0x40000);
  jit.range.writable = true;
  Apply(jit);
  const RecordingSink::Published& published = sink_.by_pid[Pid(100)];
  EXPECT_THAT(StartsOf(published), ElementsAre(0x10000, 0x12000, 0x20000, 0x30000, kStart))
      << "/lib/b has two pages in a segment";
  EXPECT_EQ(published.exec_pages, 2U + 3U + 1U) << "what is writable does not count";
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
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec_pages, 4U + 1U + 2U);
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
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec_pages, 4U);
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
  EXPECT_EQ(published.exec_pages, 2U);
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

TEST_F(ProcessHistoryTest, TakesAnUnlinkedFileForWhatItWas) {
  Scan();
  const ObjectId before = sink_.by_pid[Pid(100)].mappings[0].mapping.object;
  // A package was upgraded: the file has another ctime, and no name.
  std::filesystem::create_hard_link(machine_.root() + "/lib/a", machine_.root() + "/lib/a.old");
  machine_.LinkMapping(100, "7f0000000000-7f0000002000", machine_.root() + "/lib/a.old");
  std::string maps = "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/a");
  std::filesystem::remove(machine_.root() + "/lib/a");
  machine_.WriteFile(machine_.proc() + "/100/maps", maps + " (deleted)\n");
  history_.Recheck(kKey);
  ASSERT_THAT(sink_.by_pid[Pid(100)].mappings, SizeIs(1));
  EXPECT_EQ(sink_.by_pid[Pid(100)].mappings[0],
            (PublishedMapping{{Address(kStart), Address(kStart + 0x2000), before, kStart - 0x3000},
                              false}));
  EXPECT_EQ(history_.counters().objects, 4U) << "it was seen as another file: two vDSOs, /lib/a";
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

TEST_F(ProcessHistoryTest, FindsFilesOfADeadProcessThroughItsParentsRoot) {
  Scan();
  Fork(100, 200);  // it has no /proc/200 any more
  const uint64_t start = BootClock::Now().ToStartTime(last_).value();
  Exec(200);
  Apply(Mapping(200, "/lib/b", 'b'));
  EXPECT_EQ(PathAt(200, start, 4, kStart), "/lib/b+0x3000");
  EXPECT_EQ(history_.counters().objects_unopened, 0U);
}

TEST_F(ProcessHistoryTest, DoesNotReadTheProcOfAReusedPid) {
  Scan();
  Fork(100, 200);
  const uint64_t start = BootClock::Now().ToStartTime(last_).value();
  // By now /proc/200 is another one's, with another file at the same place.
  machine_.AddProcess(200, start + 50, "");
  machine_.LinkMapping(200, "7f0000000000-7f0000002000", machine_.root() + "/lib/a");
  Exec(200);
  MappingEvent event = Mapping(200, "/lib/gone", 0);
  event.file.inode = 1;
  Apply(event);
  EXPECT_EQ(PathAt(200, start, 4, kStart), "/lib/gone+0x1000");
  EXPECT_EQ(history_.counters().objects_unopened, 1U);
}

TEST_F(ProcessHistoryTest, OpensDeletedFilesThroughTheirMapping) {
  machine_.WriteFile(machine_.root() + "/elsewhere", "ELF d");
  Scan();
  machine_.LinkMapping(100, "7f0000000000-7f0000002000", machine_.root() + "/elsewhere");
  MappingEvent event = Mapping(100, "/lib/d (deleted)", 'd');
  Apply(event);
  EXPECT_EQ(PathAt(100, 5, 3, kStart), "/lib/d (deleted)+0x3000");
  EXPECT_EQ(ContentOf(history_.OpenObject(FrameAt(100, 5, 3, kStart).object())), "ELF d");
}

TEST_F(ProcessHistoryTest, OpensTheRootOfWhoMapsAnObject) {
  machine_.WriteFile(machine_.root() + "/beside", "what belongs to it");
  Scan();
  const ObjectId mapped = FrameAt(100, 5, 3, kStart).object();
  const Result<UniqueFd> root = history_.OpenRootOf(mapped);
  ASSERT_TRUE(root.has_value()) << root.error().message();
  EXPECT_EQ(ContentOf(OpenInRoot(root->get(), "/beside")), "what belongs to it");
  EXPECT_EQ(history_.OpenRootOf(ObjectTable::kVdso).error().code(), ErrorCode::kNotFound);
  Exit(100);
  EXPECT_EQ(history_.OpenRootOf(mapped).error().code(), ErrorCode::kNotFound);
}

TEST_F(ProcessHistoryTest, DoesNotWaitForAFifoThatAProcessCallsALibrary) {
  Scan();
  ASSERT_EQ(::mkfifo((machine_.root() + "/lib/fifo").c_str(), 0600), 0);
  Apply(Mapping(100, "/lib/fifo", 'f'));
  EXPECT_EQ(history_.counters().objects_unopened, 1U);
}

TEST_F(ProcessHistoryTest, ResolvesLinksInsideTheProcesssRoot) {
  Scan();
  machine_.WriteFile(machine_.root() + "/usr/lib/x", "ELF x");
  std::filesystem::create_directory_symlink("/usr/lib", machine_.root() + "/linked");
  std::filesystem::create_symlink("../../../../../../../etc/passwd", machine_.root() + "/lib/out");
  Apply(Mapping(100, "/linked/x", 'x'));
  EXPECT_EQ(PathAt(100, 5, 3, kStart), "/linked/x+0x3000");
  Apply(Mapping(100, "/lib/out", 'x'));
  EXPECT_EQ(history_.counters().objects_unopened, 1U);
}

TEST_F(ProcessHistoryTest, TakesTheVdsoForAnObjectAtItsStart) {
  Scan();
  MappingEvent event = Mapping(100, "[vdso]", 0);
  Apply(event);
  EXPECT_EQ(PathAt(100, 5, 3, kStart + 0x123), "[vdso]+0x123");
  EXPECT_TRUE(history_.Object(ObjectTable::kVdso)->is_vdso);
  event = Mapping(100, "[vdso]", 0);
  event.range.start = Address(0xf7f0'0000);
  event.range.end = Address(0xf7f0'2000);
  Apply(event);
  EXPECT_EQ(FrameAt(100, 5, 3, 0xf7f0'0000).object(), ObjectTable::kCompatVdso);
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

TEST_F(ProcessHistoryTest, OpensThePerfMapOfAJitEvenAfterItsDeath) {
  Scan();
  machine_.WriteFile(machine_.root() + "/tmp/perf-7.map", "1000 10 jitted\n");
  Apply(Mapping(100, "//anon", 0));
  EXPECT_EQ(ContentOf(history_.OpenPerfMap(kKey)), "1000 10 jitted\n");
  machine_.RemoveProcess(100);
  Exit(100);
  EXPECT_EQ(ContentOf(history_.OpenPerfMap(kKey)), "1000 10 jitted\n");
}

TEST_F(ProcessHistoryTest, RefusesAPerfMapThatIsALinkOrNoFile) {
  Scan();
  const ProcessKey key{Pid(100), StartTime(5)};
  EXPECT_EQ(history_.OpenPerfMap(key).error().code(), ErrorCode::kNotFound);
  machine_.WriteFile(machine_.root() + "/tmp/real", "secret");
  const std::string map = machine_.root() + "/tmp/perf-7.map";
  std::filesystem::create_symlink("real", map);
  EXPECT_FALSE(history_.OpenPerfMap(key).has_value());
  std::filesystem::remove(map);
  ASSERT_EQ(::mkfifo(map.c_str(), 0600), 0);
  EXPECT_EQ(history_.OpenPerfMap(key).error().code(), ErrorCode::kInvalid);
}

TEST_F(ProcessHistoryTest, RefusesAPerfMapOfAnotherUser) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  Scan();
  machine_.WriteFile(machine_.root() + "/tmp/perf-7.map", "1000 10 forged\n");
  ASSERT_EQ(::chown((machine_.root() + "/tmp/perf-7.map").c_str(), 4711, 4711), 0);
  const Result<UniqueFd> fd = history_.OpenPerfMap({Pid(100), StartTime(5)});
  ASSERT_FALSE(fd.has_value());
  EXPECT_EQ(fd.error().code(), ErrorCode::kPermission);
  EXPECT_THAT(fd.error().message(), HasSubstr("belongs to user 4711"));
}

TEST_F(ProcessHistoryTest, ReopensAFileItDoesNotHold) {
  ProcessHistory forgetful({.procfs = machine_.procfs(), .held_files = 1}, inspector_, sink_);
  const TaskRecord task{Pid(100), Tid(100), StartTime(5), ExecId(3), MonotonicNow()};
  ASSERT_TRUE(forgetful.Scan(std::span(&task, 1)).has_value());
  const ObjectId a = sink_.by_pid[Pid(100)].mappings[0].mapping.object;
  MappingEvent event = Mapping(100, "/lib/b", 'b');
  event.range.start = Address(0x10000);
  event.range.end = Address(0x12000);
  ProcessEvent any = event;
  forgetful.Apply(std::span(&any, 1));
  EXPECT_EQ(ContentOf(forgetful.OpenObject(a)), "ELF a");
}

TEST_F(ProcessHistoryTest, HandsKernelSymbolsOnOnce) {
  Apply(SymbolEvent{Now(), {KernelAddress(1), 2, false, "bpf_prog"}});
  EXPECT_THAT(history_.TakeKernelSymbolEvents(), SizeIs(1));
  EXPECT_THAT(history_.TakeKernelSymbolEvents(), SizeIs(0));
}

}  // namespace
}  // namespace pyrometer
