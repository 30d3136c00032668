// SPDX-License-Identifier: Apache-2.0
// Processes and files: scanned, followed, opened.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/file_identity.h"
#include "base/log.h"
#include "process/perf_ring.h"
#include "tests/unit/process/hanging_files.h"
#include "tests/unit/process/process_live_fixture.h"
#include "tests/unit/process/short_lived.h"

namespace pyrometer {
namespace {

ShortLife RunShortLived(const std::string& program) {
  const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(("exec " + program).c_str(), "r"),
                                                     &::pclose);
  ShortLife life;
  EXPECT_EQ(std::fread(&life, sizeof(life), 1, output.get()), 1U);
  return life;
}

TEST_F(ProcessLiveTest, KnowsItselfFromTheScan) {
  const Frame frame =
      Resolve({Self(), StartOf(Self())}, ExecId(1),
              Address(reinterpret_cast<uint64_t>(&AllInProgramOne)), MonotonicNow());
  ASSERT_EQ(frame.kind(), Frame::Kind::kObject);
  EXPECT_EQ(PathOf(frame), std::filesystem::read_symlink("/proc/self/exe").string());
  Dl_info where{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&AllInProgramOne), &where), 0);
  EXPECT_EQ(frame.offset().value(), reinterpret_cast<uint64_t>(&AllInProgramOne) -
                                        reinterpret_cast<uint64_t>(where.dli_fbase));
}

// Asks the tracker from within each call, which would not end if the lock were held meanwhile.
class AskingObserver final : public ProcessObserver {
 public:
  LabelSet OnProcess(const SeenProcess& /*process*/) override {
    Ask(seen);
    return labels;
  }
  LabelSet OfUnknown(Pid /*pid*/, std::string_view /*comm*/) override {
    Ask(unknown);
    return labels;
  }
  void OnSamples(std::vector<Sample>& /*samples*/) override { Ask(windows); }

  std::atomic<ProcessTracker*> tracker = nullptr;
  std::atomic<int> seen = 0;
  std::atomic<int> unknown = 0;
  std::atomic<int> windows = 0;
  const LabelSet labels = std::make_shared<const Labels>(Labels{{"service", "asking"}});

 private:
  void Ask(std::atomic<int>& count) {
    ProcessTracker* const asked = tracker;
    if (asked == nullptr) return;  // it is starting
    EXPECT_GT(asked->counters().objects, 0U);
    ++count;
  }
};

TEST_F(ProcessLiveTest, CallsTheObserverWithoutItsLock) {
  AskingObserver observer;
  ProcessTracker::Options options = Patient();
  options.observer = &observer;
  TimingSink sink;
  Result<std::unique_ptr<ProcessTracker>> tracker =
      ProcessTracker::Start(options, inspector_, sink, AllInProgramOne);
  ASSERT_TRUE(tracker) << tracker.error().message();
  observer.tracker = tracker->get();
  const Pid child = Spawn("/bin/sleep", {"1000"});
  EXPECT_TRUE(WaitFor([&] { return observer.seen > 0; }));
  const Frame nowhere = Frame::User(Address(1));
  for (const Pid pid : {child, Pid(4'000'000)}) {
    Window window = OneFrameWindow({pid, StartOf(pid)}, ExecId(1), nowhere, MonotonicNow());
    window.end = MonotonicNow();
    EXPECT_EQ((*tracker)->Resolve(std::move(window)).window.samples[0].labels, observer.labels);
  }
  EXPECT_EQ(observer.windows, 2);
  EXPECT_EQ(observer.unknown, 1);
  Kill(child);
  tracker->reset();
}

// The tracker waits for an answer, and who has to wait for it, too, finds nobody waiting any more:
// without being told to they answer after a minute only.
void ExpectAnswersWhileWaiting(ProcessTracker& tracker, ObjectId known, const HangingFiles& files,
                               MonotonicTime when) {
  EXPECT_TRUE(WaitFor([&] { return files.waiting() > 0; }));
  EXPECT_GT(tracker.counters().objects, 0U);
  EXPECT_TRUE(tracker.Object(known).has_value());
  EXPECT_TRUE(tracker.OpenObject(known).has_value());
  EXPECT_TRUE(tracker.MappingsAt({Self(), StartOf(Self())}, ExecId(1), when).has_value());
  tracker.ReplaceLabels({Self(), StartOf(Self())}, nullptr, nullptr);
  EXPECT_GT(files.waiting(), 0);
}

TEST_F(ProcessLiveTest, WaitsForFilesAndProcessesWithoutItsLock) {
  const MonotonicTime before = MonotonicNow();
  const auto files = std::make_shared<HangingFiles>();
  ProcessTracker::Options options = Patient();
  options.files = files;
  options.inspections.patience = 2 * kPatient.limit;  // so it waits until there is an answer
  options.inspections.patience_in_all = 2 * kPatient.limit;
  TimingSink sink;
  Result<std::unique_ptr<ProcessTracker>> tracker =
      ProcessTracker::Start(options, inspector_, sink, AllInProgramOne);
  ASSERT_TRUE(tracker) << tracker.error().message();
  ObjectId own(0);
  ASSERT_TRUE(WaitFor([&] {  // the scan may leave some for later
    const std::vector<PublishedMapping> mappings = sink.Of(Self()).mappings;
    if (mappings.empty()) return false;
    own = mappings[0].mapping.object;
    return (*tracker)->OpenObject(own).has_value();
  }));

  const std::string of_hung_file = CopyOf("/bin/sleep", "of_hung_file");
  files->HangOn(*InodeOf(Open(of_hung_file, O_PATH)->get()));
  const Pid first = Spawn(of_hung_file, {"1000"});
  ExpectAnswersWhileWaiting(**tracker, own, *files, before);
  files->Answer();

  files->HangOnProcesses();
  const std::string of_hung_process = CopyOf("/bin/sleep", "of_hung_process");
  const Pid second = Spawn(of_hung_process, {"1000"});
  ExpectAnswersWhileWaiting(**tracker, own, *files, before);
  files->Answer();
  const auto is_known = [&](Pid pid, const std::string& program) {
    const std::vector<PublishedMapping> mappings = sink.Of(pid).mappings;
    return std::ranges::any_of(mappings, [&](const PublishedMapping& published) {
      const std::optional<ObjectInfo> object = (*tracker)->Object(published.mapping.object);
      return object && object->was_opened && object->path == program;
    });
  };
  EXPECT_TRUE(WaitFor([&] { return is_known(first, of_hung_file); }));
  EXPECT_TRUE(WaitFor([&] { return is_known(second, of_hung_process); }));
  Kill(first);
  Kill(second);
}

TEST_F(ProcessLiveTest, KnowsEveryOneOf200ShortLivedProcesses) {
  std::vector<std::string> programs;
  for (int i = 0; i < 20; ++i) {
    programs.push_back(CopyOf(SHORT_LIVED_PROGRAM, fmt::format("program{}", i)));
  }
  uint64_t unknown = 0;
  for (size_t i = 0; i < 200; ++i) {
    const ShortLife life = RunShortLived(programs[i % programs.size()]);
    // It is gone by now, and was perhaps before anybody could look at it.
    const Frame frame = Resolve({Pid(life.pid), StartTime(life.start_ticks)}, ExecId(3),
                                Address(life.main_address), MonotonicTime(life.now_ns));
    if (frame.kind() == Frame::Kind::kUserAddress) {
      ++unknown;
      continue;
    }
    ASSERT_EQ(PathOf(frame), programs[i % programs.size()]);
    EXPECT_EQ(frame.offset(), ElfAddress(life.main_in_elf));
    EXPECT_TRUE(tracker_->OpenObject(frame.object()).has_value());
  }
  EXPECT_EQ(tracker_->counters().unknown_process_samples, unknown);
  EXPECT_EQ(unknown, 0U);
}

TEST_F(ProcessLiveTest, OpensADeletedExecutable) {
  const std::string program = CopyOf("/bin/sleep", "sleeper");
  const Pid pid = Spawn(program, {"60"});
  ASSERT_TRUE(WaitFor([&] { return Maps(pid, program); }));
  ASSERT_EQ(::unlink(program.c_str()), 0);
  Kill(pid);
  for (const auto& [mapping, shifting] : sink_.Of(pid).mappings) {
    if (tracker_->Object(mapping.object)->path != program) continue;
    const Result<UniqueFd> fd = tracker_->OpenObject(mapping.object);
    ASSERT_TRUE(fd.has_value());
    std::array<char, 4> magic{};
    EXPECT_EQ(::pread(fd->get(), magic.data(), magic.size(), 0), 4);
    EXPECT_EQ(std::string_view(magic.data(), magic.size()), std::string_view(ELFMAG, SELFMAG));
  }
}

TEST_F(ProcessLiveTest, OpensAnExecutableInAMemfd) {
  const UniqueFd memfd(::memfd_create("runner", 0));
  const Result<std::string> program = ReadFile("/bin/sleep");
  ASSERT_TRUE(program.has_value() && WriteAll(memfd.get(), *program).has_value());
  const Pid pid = Spawn(fmt::format("/proc/self/fd/{}", memfd.get()), {"60"});
  const std::string path = "/memfd:runner (deleted)";
  EXPECT_TRUE(WaitFor([&] { return Maps(pid, path); }));
  Kill(pid);
  for (const auto& [mapping, shifting] : sink_.Of(pid).mappings) {
    if (tracker_->Object(mapping.object)->path != path) continue;
    EXPECT_TRUE(tracker_->OpenObject(mapping.object).has_value());
    EXPECT_FALSE(tracker_->Object(mapping.object)->segments.empty());
  }
}

TEST_F(ProcessLiveTest, SeesALibraryThatIsLoadedLater) {
  const std::string copy = CopyOf(PathOfLibrary("libz.so.1"), "libloaded.so");
  ASSERT_FALSE(Maps(Self(), copy));
  void* const library = ::dlopen(copy.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto function = reinterpret_cast<uint64_t>(::dlsym(library, "crc32"));
  const Frame frame =
      Resolve({Self(), StartOf(Self())}, ExecId(1), Address(function), MonotonicNow());
  EXPECT_EQ(PathOf(frame), copy) << "Resolve() itself applies what has not been read yet";
  ::dlclose(library);
}

TEST_F(ProcessLiveTest, FollowsAForkedChildThatDoesNotExec) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ready[1]);
    char byte;
    (void)!::read(ready[0], &byte, 1);
    ::_exit(0);
  }
  const Pid pid(static_cast<uint32_t>(child));
  EXPECT_TRUE(WaitFor([&] { return !sink_.Of(pid).mappings.empty(); }));
  EXPECT_EQ(sink_.Of(pid).mappings, sink_.Of(Self()).mappings);
  const uint64_t start = StartOf(pid).value();
  const uint64_t told = sink_.Of(pid).process.start_time.value();
  EXPECT_TRUE(told == start || told == start + 1) << told << " is not " << start;
  EXPECT_EQ(sink_.Of(pid).exec, ExecId(1));
  ::close(ready[0]);
  ::close(ready[1]);
  Reap(pid);
  EXPECT_TRUE(WaitFor([&] { return sink_.Of(pid).withdrawn; }));
}

TEST_F(ProcessLiveTest, LooksAtProcAgainWhenItsRingsOverflowed) {
  ProcessTracker::Options options = Patient();
  options.ring_bytes = size_t{64} << 10;
  tracker_ = *ProcessTracker::Start(options, inspector_, sink_, AllInProgramOne);
  Pid last;
  {
    // The tracker's thread waits for the sink while records pile up.
    const auto blocked = sink_.Block();
    for (int i = 0; i < 400; ++i) Reap(Spawn("/bin/true", {}));
    last = Spawn("/bin/sleep", {"60"});
  }
  // Nothing else happens on the machine, so the kernel has no occasion to say that it lost records.
  EXPECT_TRUE(WaitFor([&] { return tracker_->counters().resyncs > 0; }));
  EXPECT_TRUE(WaitFor([&] { return !sink_.Of(last).mappings.empty(); }));
  EXPECT_TRUE(WaitFor([&] {
    Reap(Spawn("/bin/true", {}));  // in the end on every CPU
    return tracker_->counters().lost_records > 0;
  }));
  Kill(last);
  EXPECT_TRUE(WaitFor([&] { return sink_.Of(last).withdrawn; }));
}

// Has no room until the test lets it, or for so long that the test has failed.
class RoomlessSink : public TimingSink {
 public:
  bool AwaitRoom() override {
    std::unique_lock lock(mutex_);
    if (has_room_) return false;
    awaited_ = true;
    gave_up_ = !changed_.wait_for(lock, kTestPatience, [this] { return has_room_; });
    has_room_ = true;
    return true;
  }
  std::vector<Pid> TakeMissed() override {
    const std::lock_guard lock(mutex_);
    return has_room_ ? std::exchange(missed_, {}) : std::vector<Pid>();
  }

  bool awaited() {
    const std::lock_guard lock(mutex_);
    return awaited_;
  }
  // False if nobody was waiting any more.
  bool MakeRoomFor(Pid pid) {
    const std::lock_guard lock(mutex_);
    has_room_ = true;
    missed_ = {pid};
    changed_.notify_all();
    return !gave_up_;
  }
  bool HasTakenMissed() {
    const std::lock_guard lock(mutex_);
    return missed_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool awaited_ = false;
  bool has_room_ = false;
  bool gave_up_ = false;
  std::vector<Pid> missed_;
};

TEST_F(ProcessLiveTest, AnswersWhileItWaitsForRoomInTheKernel) {
  RoomlessSink sink;
  tracker_ = *ProcessTracker::Start(Patient(), inspector_, sink, AllInProgramOne);
  EXPECT_TRUE(WaitFor([&] { return sink.awaited(); }));
  const uint64_t publishes = tracker_->counters().publishes;
  EXPECT_TRUE(sink.MakeRoomFor(Self())) << "who asked had to wait as long";
  EXPECT_TRUE(WaitFor([&] { return sink.HasTakenMissed(); }));
  EXPECT_TRUE(WaitFor([&] { return tracker_->counters().publishes > publishes; }));
  tracker_.reset();
}

// True if the ring says that there is something new.
bool Rings(const PerfRing& bell) {
  pollfd wait{.fd = bell.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) == 1;
}

TEST_F(ProcessLiveTest, ARingOfOnePageRingsForTheNextRecordUntilItIsFull) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  const auto cpu = static_cast<unsigned>(::sched_getcpu());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  Result<PerfRing> bell = PerfRing::Open(cpu, {.ring_bytes = 0, .wakeup_bytes = 1, .min_bytes = 0});
  ASSERT_TRUE(bell.has_value()) << bell.error().message();
  const auto rename = [] { ::prctl(PR_SET_NAME, "renamed"); };
  rename();
  EXPECT_TRUE(bell->HasUnread());
  EXPECT_TRUE(Rings(*bell));
  for (int i = 0; i < 1000; ++i) rename();
  Rings(*bell);
  rename();
  EXPECT_FALSE(Rings(*bell)) << "full";
  bell->Discard();
  rename();
  EXPECT_TRUE(Rings(*bell));
  ::sched_setaffinity(0, sizeof(before), &before);
}

TEST_F(ProcessLiveTest, TriesASnapshotAgainThatFailed) {
  tracker_.reset();
  std::atomic<int> calls = 0;
  std::ostringstream told;
  Log log(clock_, Log::kQuiet,
          std::make_shared<spdlog::logger>("told",
                                           std::make_shared<spdlog::sinks::ostream_sink_mt>(told)));
  TimingSink sink;
  auto tracker = ProcessTracker::Start(
      {.clock = clock_, .log = &log, .inspections = kPatient, .reader = kPatientReader}, inspector_,
      sink, [&]() -> Result<std::vector<TaskRecord>> {
        if (++calls < 3) return Fail(ErrorCode::kIo, "not now");
        return AllInProgramOne();
      });
  ASSERT_TRUE(tracker.has_value()) << tracker.error().message();
  EXPECT_TRUE(WaitFor([&] { return !sink.Of(Self()).mappings.empty(); }));
  EXPECT_EQ((*tracker)->counters().snapshots_failed, 2U);
  EXPECT_EQ(calls, 3);
  EXPECT_NE(told.str().find("reading the exec ids of all tasks: not now"), std::string::npos)
      << told.str();
}

}  // namespace
}  // namespace pyrometer
