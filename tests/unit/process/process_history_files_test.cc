// SPDX-License-Identifier: Apache-2.0
// The files behind mappings, and perf maps: found, held and opened.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "foreign/foreign_file.h"
#include "tests/shared/eventually.h"
#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using ::testing::ElementsAre;
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

TEST_F(ProcessHistoryTest, FindsFilesOfADeadProcessThroughTheRootDirectoryItShared) {
  Scan();
  Fork(100, 200);
  const uint64_t start = BootClock::Now().ToStartTime(last_).value();
  machine_.AddProcess(200, start, "");  // in a mount namespace of its own
  Exec(200);
  Apply(Mapping(200, "/lib/a", 'a'));
  machine_.RemoveProcess(200);
  Exec(200);
  Apply(Mapping(200, "/lib/b", 'b'));
  EXPECT_EQ(PathAt(200, start, 5, kStart), "/lib/b+0x3000");
  machine_.WriteFile(machine_.root() + "/lib/c", "ELF c");
  Exec(200);
  Apply(Mapping(200, "/lib/c", 'd'));
  EXPECT_EQ(history_.counters().objects_unopened, 1U) << "its own /lib/c may be another file";
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
  const Result<UniqueFd> beside = FindInRoot(root->get(), "/beside", 0);
  ASSERT_TRUE(beside);
  EXPECT_EQ(ContentOf(OpenAgain(beside->get())), "what belongs to it");
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

// Of pid 100, by the window of a tick in its JIT code.
class PerfMaps : public ProcessHistoryTest {
 protected:
  static constexpr uint64_t kJit = 0x5000'0000;

  void SetUp() override {
    Scan();
    Apply(At(Mapping(100, "//anon", 0), kJit, kJit + 0x1000));
  }
  Result<UniqueFd> Open() { return Open(ResolvedAt(kJit)); }
  static Result<UniqueFd> Open(const ResolvedWindow& window) {
    const auto perf_map = window.perf_maps.find(kKey);
    if (perf_map == window.perf_maps.end()) return Fail(ErrorCode::kInternal, "not in the window");
    return perf_map->second->Open();
  }
  std::string Path() const { return machine_.root() + "/tmp/perf-7.map"; }
};

TEST_F(PerfMaps, OpenEvenAfterTheProcesssDeath) {
  machine_.WriteFile(Path(), "1000 10 jitted\n");
  const ResolvedWindow living = ResolvedAt(kJit);
  EXPECT_EQ(ContentOf(Open(living)), "1000 10 jitted\n");
  EXPECT_TRUE(living.ended.empty());
  machine_.RemoveProcess(100);
  Exit(100);
  EXPECT_EQ(ContentOf(Open()), "1000 10 jitted\n");
  EXPECT_TRUE(ResolvedAt(kJit).ended.contains(kKey));
  std::filesystem::remove(Path());
  machine_.WriteFile(Path(), "1000 10 renamed\n");
  EXPECT_EQ(ContentOf(Open(living)), "1000 10 renamed\n") << "the window can be named at any time";
}

TEST_F(PerfMaps, FollowAProcessToAnotherRoot) {
  machine_.WriteFile(Path(), "old");
  EXPECT_EQ(ContentOf(Open()), "old");
  machine_.WriteFile(machine_.root() + "/jail/tmp/perf-7.map", "new");
  std::filesystem::remove(machine_.proc() + "/100/root");
  std::filesystem::create_symlink(machine_.root() + "/jail", machine_.proc() + "/100/root");
  EXPECT_EQ(ContentOf(Open()), "new");
}

TEST_F(PerfMaps, AreOneForAllWindowsWhileNothingChanges) {
  EXPECT_EQ(ResolvedAt(kJit).perf_maps[kKey], ResolvedAt(kJit).perf_maps[kKey]);
}

TEST_F(PerfMaps, ComeOnlyWithWindowsThatNeedThem) {
  EXPECT_TRUE(ResolvedAt(kStart).perf_maps.empty());
}

TEST_F(PerfMaps, OfWhoHasForkedNameWhatTheChildHasInherited) {
  machine_.WriteFile(Path(), "1000 10 jitted\n");
  Fork(100, 200);
  const uint64_t start = BootClock::Now().ToStartTime(last_).value();
  Fork(200, 300);
  const uint64_t later = BootClock::Now().ToStartTime(last_).value();
  const auto resolved = [&](uint32_t pid, uint64_t began) {
    const ProcessKey key{Pid(pid), StartTime(began)};
    return history_.Resolve(OneFrameWindow(key, ExecId(3), Frame::User(Address(kJit)), Now()));
  };
  for (const auto& [pid, began] : {std::pair(200U, start), std::pair(300U, later)}) {
    const ResolvedWindow window = resolved(pid, began);
    const auto from = window.inherited.find(ProcessKey{Pid(pid), StartTime(began)});
    ASSERT_NE(from, window.inherited.end()) << pid;
    EXPECT_THAT(from->second, ElementsAre(kKey));
    EXPECT_EQ(ContentOf(Open(window)), "1000 10 jitted\n");
  }
  Exec(200);
  EXPECT_TRUE(resolved(200, start).inherited.empty()) << "it runs something else now";
  EXPECT_FALSE(resolved(300, later).inherited.empty());
  Exec(100);
  EXPECT_TRUE(resolved(300, later).inherited.empty()) << "the perf map is of something else now";
}

TEST_F(PerfMaps, AreRefusedIfTheyAreLinksOrNoFiles) {
  EXPECT_EQ(Open().error().code(), ErrorCode::kNotFound);
  machine_.WriteFile(machine_.root() + "/tmp/real", "secret");
  std::filesystem::create_symlink("real", Path());
  EXPECT_FALSE(Open().has_value());
  std::filesystem::remove(Path());
  ASSERT_EQ(::mkfifo(Path().c_str(), 0600), 0);
  EXPECT_EQ(Open().error().code(), ErrorCode::kInvalid);
}

TEST_F(PerfMaps, AreRefusedIfTheyAreAnotherUsers) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  machine_.WriteFile(Path(), "1000 10 forged\n");
  ASSERT_EQ(::chown(Path().c_str(), 4711, 4711), 0);
  const Result<UniqueFd> fd = Open();
  ASSERT_FALSE(fd.has_value());
  EXPECT_EQ(fd.error().code(), ErrorCode::kPermission);
  EXPECT_THAT(fd.error().message(), HasSubstr("belongs to user 4711"));
}

TEST_F(PerfMaps, AreAnotherProcesssIfTheyAreOlderThanTheirs) {
  constexpr uint32_t kLater = 200;
  constexpr StartTime kYearFromBoot(uint64_t{365} * 86400 * 100);
  machine_.WriteFile(Path(), "1000 10 jitted\n");
  machine_.AddProcess(kLater, kYearFromBoot.value(), "50000000-50001000 r-xp 00000000 00:00 0\n");
  Scan();
  const ProcessKey key{Pid(kLater), kYearFromBoot};
  const ResolvedWindow window =
      history_.Resolve(OneFrameWindow(key, ExecId(3), Frame::User(Address(kJit)), Now()));
  ASSERT_TRUE(window.perf_maps.contains(key));
  const Result<UniqueFd> fd = window.perf_maps.at(key)->Open();
  ASSERT_FALSE(fd.has_value());
  EXPECT_EQ(fd.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(fd.error().message(), HasSubstr("older than its process"));
}

// Of pid 100, by the window of a tick in its JIT code.
class JitDumps : public PerfMaps {
 protected:
  void SetUp() override {
    PerfMaps::SetUp();
    machine_.WriteFile(machine_.root() + "/tmp/jit-7.dump", "records");
  }
  MappingEvent MapsDump(uint32_t pid, const std::string& path) {
    const UniqueFd file(::open((machine_.root() + path).c_str(), O_PATH | O_CLOEXEC));
    const Result<Inode> inode = InodeOf(file.get());
    MappingEvent event = At(Mapping(pid, path, 0), kMarker, kMarker + 0x1000);
    event.file.inode = inode->number;
    event.file.major = gnu_dev_major(inode->device);
    event.file.minor = gnu_dev_minor(inode->device);
    return event;
  }
  static std::vector<std::string> Contents(const ResolvedWindow& window, const ProcessKey& key) {
    std::vector<std::string> contents;
    const auto known = window.jit_dumps.find(key);
    if (known == window.jit_dumps.end()) return contents;
    for (const JitDumpUse& use : known->second) contents.push_back(ContentOf(use.file->Open()));
    return contents;
  }

  static constexpr uint64_t kMarker = 0x6000'0000;
};

TEST_F(JitDumps, ComeWithWindowsOnceAPageOfThemIsMapped) {
  EXPECT_TRUE(ResolvedAt(kJit).jit_dumps.empty());
  Apply(MapsDump(100, "/tmp/jit-7.dump"));
  EXPECT_THAT(Contents(ResolvedAt(kJit), kKey), ElementsAre("records"));
  Apply(MapsDump(100, "/tmp/jit-7.dump"));
  EXPECT_THAT(Contents(ResolvedAt(kJit), kKey), ElementsAre("records")) << "it is the same";
  machine_.WriteFile(machine_.root() + "/tmp/jit-8.dump", "later");
  Apply(MapsDump(100, "/tmp/jit-8.dump"));
  const ResolvedWindow both = ResolvedAt(kJit);
  EXPECT_THAT(Contents(both, kKey), ElementsAre("later", "records"));
  std::filesystem::remove(machine_.root() + "/tmp/jit-8.dump");
  machine_.RemoveProcess(100);
  Exit(100);
  EXPECT_THAT(Contents(ResolvedAt(kJit), kKey), ElementsAre("later", "records"))
      << "whatever becomes of their names";
}

TEST_F(JitDumps, AreNotOtherFilesOfSuchNames) {
  machine_.WriteFile(machine_.root() + "/tmp/other", "other");
  MappingEvent event = MapsDump(100, "/tmp/other");
  event.file.path = "/tmp/jit-7.dump";  // by now the name is another's
  Apply(event);
  event = MapsDump(100, "/tmp/jit-7.dump");
  event.file.path = "/tmp/jit-x.dump";
  Apply(event);
  EXPECT_TRUE(ResolvedAt(kJit).jit_dumps.empty());
}

TEST_F(JitDumps, TellChildrenOfTheTimeBeforeTheFork) {
  Apply(MapsDump(100, "/tmp/jit-7.dump"));
  Fork(100, 200);
  const MonotonicTime when = last_;
  const ProcessKey child{Pid(200), BootClock::Now().ToStartTime(when)};
  const auto resolved = [&] {
    return history_.Resolve(OneFrameWindow(child, ExecId(3), Frame::User(Address(kJit)), Now()));
  };
  const ResolvedWindow window = resolved();
  EXPECT_THAT(Contents(window, child), ElementsAre("records"));
  EXPECT_EQ(window.jit_dumps.at(child).front().until, when);
  EXPECT_EQ(ResolvedAt(kJit).jit_dumps.at(kKey).front().until, kForever);
  // It still maps the page.
  machine_.AddProcess(
      200, child.start_time.value(),
      "60000000-60001000 r-xp 00000000 " + machine_.MapsTail("/tmp/jit-7.dump") + "\n");
  history_.Recheck(child);
  EXPECT_EQ(resolved().jit_dumps.at(child).size(), 1U);
  EXPECT_EQ(resolved().jit_dumps.at(child).front().until, when);
  Exec(200);
  EXPECT_TRUE(Contents(resolved(), child).empty());
}

TEST_F(JitDumps, AreFoundWithWhatAProcessHasMapped) {
  machine_.WriteFile(machine_.proc() + "/100/maps",
                     "50000000-50001000 r-xp 00000000 00:00 0\n60000000-60001000 r-xp 00000000 " +
                         machine_.MapsTail("/tmp/jit-7.dump") + "\n");
  history_.Recheck(kKey);
  EXPECT_THAT(Contents(ResolvedAt(kJit), kKey), ElementsAre("records"));
}

// More processes than may have a directory held for them.
class ManyPerfMaps : public PerfMaps {
 protected:
  static constexpr uint32_t kFirst = 1000;
  static constexpr uint32_t kLast = kFirst + 256;

  void AddProcesses(const std::string& maps) {
    machine_.WriteFile(Path(), "1000 10 jitted\n");
    for (uint32_t pid = kFirst; pid <= kLast; ++pid) machine_.AddProcess(pid, 5, maps);
    Scan();
  }
  std::string MapOf(uint32_t pid) {
    const ProcessKey key{Pid(pid), StartTime(5)};
    const ResolvedWindow resolved =
        history_.Resolve(OneFrameWindow(key, ExecId(3), Frame::User(Address(kJit)), Now()));
    const auto perf_map = resolved.perf_maps.find(key);
    return perf_map == resolved.perf_maps.end() ? "none" : ContentOf(perf_map->second->Open());
  }
};

TEST_F(ManyPerfMaps, ComeWithTheWindowsOfAllThatLive) {
  AddProcesses("50000000-50001000 r-xp 00000000 00:00 0\n");
  for (uint32_t pid = kFirst; pid <= kLast; ++pid) EXPECT_EQ(MapOf(pid), "1000 10 jitted\n");
}

TEST_F(ManyPerfMaps, AreHeldOnlyForProcessesWithCodeThatIsInNoFile) {
  AddProcesses("");
  for (uint32_t pid = kFirst; pid <= kLast; ++pid) EXPECT_EQ(MapOf(pid), "1000 10 jitted\n");
  Apply(At(Mapping(kLast, "//anon", 0), kJit, kJit + 0x1000));
  machine_.RemoveProcess(kLast);
  Exit(kLast);
  EXPECT_EQ(MapOf(kLast), "1000 10 jitted\n");
}

std::string ContentOf(const ObjectFile& file) {
  return file == nullptr ? "gone" : ContentOf(Result<UniqueFd>(UniqueFd(::dup(file->get()))));
}

TEST_F(ProcessHistoryTest, AWindowBringsTheObjectsOfItsFrames) {
  Scan();
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000));
  const ResolvedWindow resolved = ResolvedAt(kStart);
  ASSERT_THAT(resolved.objects, SizeIs(1));
  const auto& [id, object] = *resolved.objects.begin();
  EXPECT_EQ(id, OnlyFrameOf(resolved.window).object());
  EXPECT_EQ(object.info->path, "/lib/a");
  EXPECT_EQ(ContentOf(object.file), "ELF a");
}

TEST_F(ProcessHistoryTest, AWindowSaysThatAFileWasNeverOpened) {
  Scan();
  MappingEvent event = Mapping(100, "/lib/gone", 0);
  event.file.inode = 1;
  Apply(event);
  const ResolvedWindow resolved = ResolvedAt(kStart);
  ASSERT_THAT(resolved.objects, SizeIs(1));
  EXPECT_EQ(resolved.objects.begin()->second.info->path, "/lib/gone");
  EXPECT_EQ(resolved.objects.begin()->second.file, nullptr);
}

TEST_F(ProcessHistoryTest, AWindowHoldsItsFilesHoweverLateItIsNamed) {
  constexpr uint64_t kHour = 3'600'000'000'000;
  Scan();
  const ResolvedWindow waiting = ResolvedAt(kStart);
  const ObjectId a = OnlyFrameOf(waiting.window).object();
  const auto pass = [&](uint64_t hours) {
    const MonotonicTime end(Now().value() + kHour * hours);
    history_.Resolve(OneFrameWindow(kKey, ExecId(3), Frame::User(Address(kStart)), end));
  };
  pass(1);
  EXPECT_TRUE(history_.OpenObject(a).has_value()) << "it lives";
  machine_.RemoveProcess(100);
  Exit(100);
  EXPECT_TRUE(history_.OpenObject(a).has_value()) << "its samples may still come";
  pass(2);
  EXPECT_FALSE(history_.OpenObject(a).has_value());
  EXPECT_EQ(sink_.releases, 3);
  EXPECT_EQ(ContentOf(waiting.objects.at(a).file), "ELF a");
  EXPECT_EQ(waiting.objects.at(a).file.use_count(), 1) << "closed with the window";
}

TEST_F(ProcessHistoryTest, KernelSymbolsComeWithTheWindowInWhichTheyChanged) {
  const auto change = [&](uint64_t address) {
    const MonotonicTime when = Now();
    Apply(SymbolEvent{when, {KernelAddress(address), 8, false, "bpf"}});
    return when;
  };
  const auto taken = [&](MonotonicTime end) {
    Window window;
    window.end = end;
    std::vector<uint64_t> addresses;
    for (const KernelSymbolEvent& event : history_.Resolve(std::move(window)).kernel_events) {
      addresses.push_back(event.address.value());
    }
    return addresses;
  };
  change(1);
  const MonotonicTime end = change(2);
  change(3);
  EXPECT_THAT(taken(end), ElementsAre(1, 2));
  EXPECT_THAT(taken(Now()), ElementsAre(3));
  EXPECT_THAT(taken(Now()), ElementsAre());
}

// A history that can hold one file, of a machine whose pid 100 has mapped two.
class OneHeldFile : public ProcessHistoryTest {
 protected:
  void SetUp() override {
    const TaskRecord task{Pid(100), Tid(100), StartTime(5), ExecId(3), clock_.Now()};
    ASSERT_TRUE(forgetful_.Scan(std::span(&task, 1)).has_value());
    MapSecond();
  }
  void MapSecond() {
    ProcessEvent event = At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000);
    forgetful_.Apply(std::span(&event, 1));
  }
  ResolvedWindow Both() {
    Window window = OneFrameWindow(kKey, ExecId(3), Frame::User(Address(kStart)), Now());
    window.frames.push_back(Frame::User(Address(0x10000)));
    window.stacks[0].user_frames = 2;
    return forgetful_.Resolve(std::move(window));
  }
  static std::vector<std::string> ContentsOf(const ResolvedWindow& resolved) {
    std::vector<std::string> contents;
    for (const Frame frame : resolved.window.FramesOf(resolved.window.stacks[0])) {
      contents.push_back(ContentOf(resolved.objects.at(frame.object()).file));
    }
    return contents;
  }

  ProcessHistory forgetful_{{.clock = clock_,
                             .procfs = machine_.procfs(),
                             .held_files = 1,
                             .inspections = kPatient,
                             .reader = kPatientReader},
                            inspector_,
                            sink_};
};

TEST_F(OneHeldFile, WhatSamplesWereInComesWithItsFileIfThatIsHeld) {
  const ObjectId a = sink_.by_pid[Pid(100)].mappings[1].mapping.object;
  const ObjectId b = sink_.by_pid[Pid(100)].mappings[0].mapping.object;
  sink_.used = {a, ObjectTable::kVdso, b, ObjectId(999)};
  const std::vector<SampledObject> sampled = forgetful_.TakeSampled();
  ASSERT_EQ(sampled.size(), 1);
  EXPECT_EQ(sampled[0].object.info->path, "/lib/b");
  EXPECT_EQ(ContentOf(sampled[0].object.file), "ELF b");
  EXPECT_TRUE(forgetful_.TakeSampled().empty());
}

TEST_F(OneHeldFile, OthersAreOpenedAgainForAWindow) {
  EXPECT_THAT(ContentsOf(Both()), ElementsAre("ELF a", "ELF b"));
}

TEST_F(OneHeldFile, NoMoreThanTwiceAsManyAreOpenAtATime) {
  const ResolvedWindow waiting = Both();
  EXPECT_THAT(ContentsOf(Both()), ::testing::Contains("gone"));
  EXPECT_THAT(ContentsOf(waiting), ElementsAre("ELF a", "ELF b"));
}

TEST_F(OneHeldFile, WhatCannotBeReachedIsNotLookedForInEveryWindow) {
  const std::string process = machine_.proc() + "/100";
  std::filesystem::rename(process, process + "-hidden");
  EXPECT_THAT(ContentsOf(Both()), ElementsAre("gone", "ELF b"));
  std::filesystem::rename(process + "-hidden", process);
  clock_.Advance(std::chrono::seconds(59));
  EXPECT_THAT(ContentsOf(Both()), ElementsAre("gone", "ELF b"));
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(ContentsOf(Both()), ElementsAre("ELF a", "ELF b"));
}

TEST_F(OneHeldFile, AProcessWithManyMappingsOfAFileIsOneAttemptToReachIt) {
  constexpr uint32_t kHidden = 6;
  std::string maps;
  for (uint32_t i = 0; i < 10; ++i) {
    maps += fmt::format("7f0000{0:x}0000-7f0000{0:x}2000 r-xp 00001000 {1}\n", 16 + i,
                        machine_.MapsTail("/lib/a"));
  }
  for (uint32_t pid = 200; pid < 200 + kHidden; ++pid) machine_.AddProcess(pid, 5, maps);
  ASSERT_TRUE(forgetful_.Scan({}).has_value());
  MapSecond();
  for (uint32_t pid = 200; pid < 200 + kHidden; ++pid) machine_.RemoveProcess(pid);
  EXPECT_THAT(ContentsOf(Both()), ElementsAre("ELF a", "ELF b"));
}

TEST_F(OneHeldFile, OthersAreOpenedAgainForWhoAsks) {
  const ObjectId a = sink_.by_pid[Pid(100)].mappings[1].mapping.object;
  EXPECT_EQ(ContentOf(forgetful_.OpenObject(a)), "ELF a");
}

// A library without a build id: /lib/plain, mapped by pid 100 at kStart.
class OverwrittenFileTest : public ProcessHistoryTest {
 protected:
  OverwrittenFileTest() {
    path_ = machine_.root() + "/lib/plain";
    machine_.WriteFile(path_, "ELF 0");
    machine_.RemoveProcess(100);
    machine_.AddProcess(100, 5, Maps());
    Scan();
  }
  std::string Maps() const {
    return "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/plain") + "\n";
  }
  void Overwrite() const {
    machine_.WriteFile(path_, "ELF 0, another one");
    // Not now: a clock that counts in ticks might show the same time.
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = 1, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  ObjectId Published() { return sink_.by_pid[Pid(100)].mappings.at(0).mapping.object; }

  std::string path_;
};

TEST_F(OverwrittenFileTest, IsAnotherObjectForTheNextWhoMapsIt) {
  const ObjectId before = Published();
  Overwrite();
  machine_.AddProcess(300, 9, Maps());
  Scan();
  EXPECT_NE(sink_.by_pid[Pid(100)].mappings.at(0).mapping.object, before);
  EXPECT_NE(FrameAt(300, 9, 0, kStart).object(), before);
}

TEST_F(OverwrittenFileTest, IsNeverTakenForWhatItWas) {
  const ObjectId before = Published();
  EXPECT_EQ(FrameAt(100, 5, 3, kStart).object(), before);
  Overwrite();
  const Frame doubtful = FrameAt(100, 5, 3, kStart + 0x10);
  EXPECT_NE(doubtful.object(), before);
  EXPECT_FALSE(history_.Object(doubtful.object())->was_opened) << "nobody can name anything in it";
  EXPECT_EQ(PathAt(100, 5, 3, kStart + 0x10).substr(0, 10), "/lib/plain");
  EXPECT_EQ(doubtful.offset(), ElfAddress(0x1010)) << "its offset in the file";
  EXPECT_EQ(history_.counters().files_overwritten, 1);
}

// Its process may be gone by the time that its mapping is looked at.
TEST_F(OverwrittenFileTest, IsNotWhatWasMappedBefore) {
  clock_.SetWall(std::chrono::system_clock::now());
  MappingEvent mapped = At(Mapping(100, "/lib/plain", 0), kStart + 0x10000, kStart + 0x12000);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  mapped.file.inode = status.st_ino;
  mapped.file.major = gnu_dev_major(status.st_dev);
  mapped.file.minor = gnu_dev_minor(status.st_dev);
  ASSERT_TRUE(Eventually([&] {  // the time of a file is that of a tick
    machine_.WriteFile(path_, "ELF 0 of something else");
    return std::filesystem::last_write_time(path_) >
           std::chrono::file_clock::from_sys(clock_.WallNow());
  }));
  clock_.Advance(std::chrono::hours(1));
  Apply(mapped);
  const Frame frame = FrameAt(100, 5, 3, kStart + 0x10010);
  ASSERT_EQ(frame.kind(), Frame::Kind::kObject);
  EXPECT_FALSE(history_.Object(frame.object())->was_opened);
  EXPECT_EQ(history_.Object(frame.object())->path, "/lib/plain");
  EXPECT_EQ(frame.offset(), ElfAddress(0x1010)) << "its offset in the file";
}

// Whoever reads symbols has them from before, or none.
TEST_F(OverwrittenFileTest, IsWhatItWasForSamplesFromBefore) {
  clock_.SetWall(std::chrono::system_clock::now() - std::chrono::seconds(1));
  const ObjectId before = Published();
  const MonotonicTime then = Now();
  machine_.WriteFile(path_, "ELF 0, another one");
  clock_.Advance(std::chrono::hours(1));
  const auto object_at = [&](MonotonicTime last_seen) {
    Window window = OneFrameWindow(kKey, ExecId(3), Frame::User(Address(kStart)), then);
    window.samples[0].last_seen = last_seen;
    window.end = Now();
    return OnlyFrameOf(history_.Resolve(std::move(window)).window).object();
  };
  const ObjectId doubtful = object_at(Now());
  EXPECT_NE(doubtful, before);
  EXPECT_FALSE(history_.Object(doubtful)->was_opened);
  EXPECT_EQ(object_at(then), before);
}

TEST_F(OverwrittenFileTest, IsKnownAsWhatItIsNow) {
  const ObjectId before = Published();
  Overwrite();
  FrameAt(100, 5, 3, kStart);
  const ObjectId after = Published();
  EXPECT_NE(after, before);
  EXPECT_TRUE(history_.Object(after)->was_opened);
  EXPECT_EQ(FrameAt(100, 5, 3, kStart + 0x10), Frame::Object(after, ElfAddress(0x3010)));
}

TEST_F(OverwrittenFileTest, IsWhatItWasIfItIsOnlyDeleted) {
  const ObjectId before = Published();
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_EQ(FrameAt(100, 5, 3, kStart).object(), before);
}

}  // namespace
}  // namespace pyrometer
