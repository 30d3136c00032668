// SPDX-License-Identifier: Apache-2.0
// The files behind mappings, and perf maps: found, held and opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/foreign_file.h"
#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

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

TEST_F(ProcessHistoryTest, OpensThePerfMapOfAJitEvenAfterItsDeath) {
  Scan();
  machine_.WriteFile(machine_.root() + "/tmp/perf-7.map", "1000 10 jitted\n");
  Apply(Mapping(100, "//anon", 0));
  EXPECT_EQ(ContentOf(history_.OpenPerfMap(kKey)), "1000 10 jitted\n");
  EXPECT_FALSE(history_.HasEnded(kKey));
  machine_.RemoveProcess(100);
  Exit(100);
  EXPECT_EQ(ContentOf(history_.OpenPerfMap(kKey)), "1000 10 jitted\n");
  EXPECT_TRUE(history_.HasEnded(kKey));
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

TEST_F(ProcessHistoryTest, ClosesFilesOfForgottenProcesses) {
  constexpr uint64_t kHour = 3'600'000'000'000;
  Scan();
  const ObjectId a = sink_.by_pid[Pid(100)].mappings[0].mapping.object;
  const auto pass = [&](int hours) {
    const MonotonicTime end(Now().value() + kHour * static_cast<uint64_t>(hours));
    history_.Resolve(OneFrameWindow(kKey, ExecId(3), Frame::User(Address(kStart)), end));
    history_.CloseUnusedFiles(end);
  };
  pass(1);
  pass(2);
  EXPECT_TRUE(history_.OpenObject(a).has_value()) << "it lives";
  machine_.RemoveProcess(100);
  Exit(100);
  history_.CloseUnusedFiles(MonotonicTime(Now().value() + 3 * kHour));
  history_.CloseUnusedFiles(MonotonicTime(Now().value() + 4 * kHour));
  EXPECT_TRUE(history_.OpenObject(a).has_value()) << "its samples may still come";
  pass(5);
  EXPECT_TRUE(history_.OpenObject(a).has_value()) << "windows before may not be named yet";
  EXPECT_EQ(sink_.releases, 3);
  pass(6);
  EXPECT_FALSE(history_.OpenObject(a).has_value());
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

}  // namespace
}  // namespace pyrometer
