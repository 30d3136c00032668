// SPDX-License-Identifier: Apache-2.0
// The tracker on this machine, with real processes. Needs the right to open perf events.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "process/process_directory.h"
#include "process/process_tracker.h"
#include "tests/unit/process/short_lived.h"

extern char** environ;

namespace pyrometer {
namespace {

using Clock = std::chrono::steady_clock;

// Reads the program headers and nothing else.
class HeaderInspector : public ObjectInspector {
 public:
  Result<ObjectFacts> Inspect(int fd) override {
    Elf64_Ehdr header{};
    if (!ReadAt(fd, 0, std::as_writable_bytes(std::span(&header, 1)))) return ObjectFacts{};
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return ObjectFacts{};
    ObjectFacts facts;
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr phdr{};
      RETURN_IF_ERROR(ReadAt(fd, header.e_phoff + i * sizeof(phdr),
                             std::as_writable_bytes(std::span(&phdr, 1))));
      if (phdr.p_type == PT_LOAD) {
        facts.segments.push_back({FileOffset(phdr.p_offset), ElfAddress(phdr.p_vaddr),
                                  phdr.p_filesz, phdr.p_memsz, (phdr.p_flags & PF_X) != 0});
      } else if (phdr.p_type == PT_NOTE && facts.build_id.empty()) {
        facts.build_id = FindBuildId(fd, phdr);
      }
    }
    return facts;
  }

 private:
  static BuildId FindBuildId(int fd, const Elf64_Phdr& segment) {
    std::vector<std::byte> notes(std::min<uint64_t>(segment.p_filesz, 65536));
    if (!ReadAt(fd, segment.p_offset, notes)) return {};
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes.data() + at, sizeof(note));
      const size_t name = at + sizeof(note);
      const size_t content = name + (note.n_namesz + 3) / 4 * 4;
      if (content + note.n_descsz > notes.size()) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4) {
        return BuildId(std::span(notes).subspan(content, note.n_descsz));
      }
      at = content + (note.n_descsz + 3) / 4 * 4;
    }
    return {};
  }
};

// Notes when each pid was first published.
class TimingSink : public AddressSpaceSink {
 public:
  struct Seen {
    ProcessKey process;
    ExecId exec;
    MonotonicTime first;
    uint64_t exec_pages = 0;
    std::vector<PublishedMapping> mappings;
    bool withdrawn = false;
  };

  void Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
               std::span<const PublishedMapping> sorted) override {
    const std::lock_guard lock(mutex_);
    Seen& seen = seen_[process.pid];
    if (seen.process != process || seen.exec != exec) seen = {process, exec, MonotonicNow(), 0, {}};
    seen.exec_pages = exec_pages;
    seen.mappings.assign(sorted.begin(), sorted.end());
    seen.withdrawn = false;
  }
  void Withdraw(Pid pid) override {
    const std::lock_guard lock(mutex_);
    seen_[pid].withdrawn = true;
  }

  std::vector<Pid> Published() {
    const std::lock_guard lock(mutex_);
    std::vector<Pid> pids;
    for (const auto& [pid, seen] : seen_) {
      if (!seen.withdrawn && !seen.mappings.empty()) pids.push_back(pid);
    }
    return pids;
  }

  // Until it is destroyed, whoever publishes waits.
  std::unique_lock<std::mutex> Block() { return std::unique_lock(mutex_); }

  Seen Of(Pid pid) {
    const std::lock_guard lock(mutex_);
    return seen_[pid];
  }

 private:
  std::mutex mutex_;
  std::map<Pid, Seen> seen_;
};

bool WaitFor(const std::function<bool()>& condition) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // not to starve the tracker
  }
  return true;
}

StartTime StartOf(Pid pid) {
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(Procfs{}, pid);
  return directory ? directory->Stat()->start : StartTime(0);
}

// mm->exec_vm: VmLib is all of it but VmExe (task_mem() in the kernel's fs/proc/task_mmu.c).
// Nothing if the process is gone.
std::optional<uint64_t> ExecVm(Pid pid) {
  const Result<std::string> status = ReadFile(fmt::format("/proc/{}/status", pid.value()));
  if (!status) return std::nullopt;
  uint64_t kilobytes = 0;
  for (const char* name : {"\nVmExe:", "\nVmLib:"}) {
    const size_t at = status->find(name);
    if (at == std::string::npos) return std::nullopt;
    kilobytes += std::strtoull(status->c_str() + at + std::strlen(name), nullptr, 10);
  }
  return kilobytes * 1024 / static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// True where scripts/vm-test runs this.
bool IsEmulated() {
  return std::getenv("PYROMETER_EMULATED") != nullptr;
}

Pid Self() {
  return Pid(static_cast<uint32_t>(::getpid()));
}

// As if a task iterator had run: every process is in its first program as far as we know.
Result<std::vector<TaskRecord>> AllInProgramOne() {
  std::vector<TaskRecord> tasks;
  const MonotonicTime now = MonotonicNow();
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const Pid pid(static_cast<uint32_t>(std::atoi(entry.path().filename().c_str())));
    if (pid.value() == 0) continue;
    const Result<ProcessDirectory> directory = ProcessDirectory::Open(Procfs{}, pid);
    if (!directory) continue;
    const Result<ProcStat> stat = directory->Stat();
    if (stat) tasks.push_back({pid, Tid(pid.value()), stat->start, ExecId(1), now});
  }
  return tasks;
}

std::string PathOfLibrary(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW);
  Dl_info where{};
  EXPECT_NE(::dladdr(::dlsym(library, "crc32"), &where), 0) << name;
  const std::string path = where.dli_fname == nullptr ? "" : where.dli_fname;
  ::dlclose(library);
  return path;
}

class ProcessLiveTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<ProcessTracker>> tracker =
        ProcessTracker::Start({}, inspector_, sink_, AllInProgramOne);
    if (!tracker) {
      const char* required = std::getenv("PYROMETER_REQUIRE_BPF");
      if (required != nullptr && std::string_view(required) == "1") {
        FAIL() << tracker.error().message();
      }
      GTEST_SKIP() << tracker.error().message();
    }
    tracker_ = *std::move(tracker);
    std::string pattern = testing::TempDir() + "pyrometer_live_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  static Pid Spawn(const std::string& path, std::vector<std::string> arguments) {
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    EXPECT_EQ(::posix_spawn(&pid, path.c_str(), nullptr, nullptr, argv.data(), environ), 0) << path;
    return Pid(static_cast<uint32_t>(pid));
  }

  static void Reap(Pid pid) { ::waitpid(static_cast<pid_t>(pid.value()), nullptr, 0); }
  static void Kill(Pid pid) {
    ::kill(static_cast<pid_t>(pid.value()), SIGKILL);
    Reap(pid);
  }

  // True as soon as what is published of a living process is what the kernel counts.
  bool AgreesWithTheKernel(Pid pid) {
    return WaitFor([&] { return sink_.Of(pid).exec_pages == ExecVm(pid); });
  }
  bool Recheck(Pid pid) {
    tracker_->Recheck({pid, StartOf(pid)});
    return sink_.Of(pid).exec_pages == ExecVm(pid);
  }
  bool IsShifting(Pid pid, Address address) {
    const std::vector<PublishedMapping> mappings = sink_.Of(pid).mappings;
    return std::ranges::any_of(mappings, [&](const PublishedMapping& published) {
      return published.mapping.Contains(address) && published.shifting;
    });
  }

  static ShortLife RunShortLived(const std::string& program) {
    const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(("exec " + program).c_str(), "r"),
                                                       &::pclose);
    ShortLife life;
    EXPECT_EQ(std::fread(&life, sizeof(life), 1, output.get()), 1U);
    return life;
  }

  std::string CopyOf(const std::string& program, const std::string& name) const {
    const std::string copy = directory_ + "/" + name;
    std::filesystem::copy_file(program, copy);
    return copy;
  }

  // The object frame of `address` in that process at `when`, by way of a window.
  Frame Resolve(const ProcessKey& process, ExecId exec, Address address, MonotonicTime when) {
    Window window;
    window.end = MonotonicNow();
    window.frames = {Frame::User(address)};
    window.stacks = {Stack{0, 0, 1, StackEnd::kComplete}};
    Sample sample;
    sample.process = process;
    sample.exec = exec;
    sample.first_seen = when;
    sample.last_seen = when;
    window.samples = {sample};
    return tracker_->Resolve(std::move(window)).frames[0];
  }

  std::string PathOf(Frame frame) const {
    if (frame.kind() != Frame::Kind::kObject) return "address";
    return tracker_->Object(frame.object())->path;
  }

  bool Maps(Pid pid, const std::string& path) {
    const std::vector<PublishedMapping> mappings = sink_.Of(pid).mappings;
    return std::any_of(mappings.begin(), mappings.end(), [&](const PublishedMapping& published) {
      const std::optional<ObjectInfo> object = tracker_->Object(published.mapping.object);
      return object && object->path == path;
    });
  }

  HeaderInspector inspector_;
  TimingSink sink_;
  std::unique_ptr<ProcessTracker> tracker_;
  std::string directory_;
};

TEST_F(ProcessLiveTest, KnowsItselfFromTheScan) {
  const Pid self(static_cast<uint32_t>(::getpid()));
  const Frame frame =
      Resolve({self, StartOf(self)}, ExecId(1),
              Address(reinterpret_cast<uint64_t>(&AllInProgramOne)), MonotonicNow());
  ASSERT_EQ(frame.kind(), Frame::Kind::kObject);
  EXPECT_EQ(PathOf(frame), std::filesystem::read_symlink("/proc/self/exe").string());
  Dl_info where{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&AllInProgramOne), &where), 0);
  EXPECT_EQ(frame.offset().value(), reinterpret_cast<uint64_t>(&AllInProgramOne) -
                                        reinterpret_cast<uint64_t>(where.dli_fbase));
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
  EXPECT_EQ(tracker_->counters().objects_unopened, 0U);
  EXPECT_EQ(tracker_->counters().unknown_process_samples, unknown);
  // The host of an emulated CPU may put it aside, for longer than the tick that is allowed for,
  // between a process's start and the report of it.
  EXPECT_LE(unknown, IsEmulated() ? 10U : 0U);
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
  const Pid self(static_cast<uint32_t>(::getpid()));
  const std::string copy = CopyOf(PathOfLibrary("libz.so.1"), "libloaded.so");
  ASSERT_FALSE(Maps(self, copy));
  void* const library = ::dlopen(copy.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto function = reinterpret_cast<uint64_t>(::dlsym(library, "crc32"));
  const Frame frame = Resolve({self, StartOf(self)}, ExecId(1), Address(function), MonotonicNow());
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
  EXPECT_EQ(sink_.Of(pid).mappings, sink_.Of(Pid(static_cast<uint32_t>(::getpid()))).mappings);
  EXPECT_EQ(sink_.Of(pid).process.start_time, StartOf(pid));
  EXPECT_EQ(sink_.Of(pid).exec, ExecId(1));
  ::close(ready[0]);
  ::close(ready[1]);
  Reap(pid);
  EXPECT_TRUE(WaitFor([&] { return sink_.Of(pid).withdrawn; }));
}

TEST_F(ProcessLiveTest, LooksAtProcAgainWhenItsRingsOverflowed) {
  ProcessTracker::Options options;
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

TEST_F(ProcessLiveTest, CountsThePagesOfEveryProcessAsTheKernelDoes) {
  std::map<Pid, std::optional<uint64_t>> before;
  const std::vector<TaskRecord> tasks = *AllInProgramOne();
  for (const TaskRecord& task : tasks) before[task.pid] = ExecVm(task.pid);
  tracker_ = *ProcessTracker::Start({}, inspector_, sink_, AllInProgramOne);
  size_t compared = 0;
  for (const Pid pid : sink_.Published()) {
    const uint64_t published = sink_.Of(pid).exec_pages;
    const std::optional<uint64_t> now = ExecVm(pid);
    if (!now || now != before[pid]) continue;  // it changed meanwhile
    ++compared;
    EXPECT_EQ(published, *now) << *ReadFile(fmt::format("/proc/{}/comm", pid.value()))
                               << *ReadFile(fmt::format("/proc/{}/maps", pid.value()));
  }
  EXPECT_GE(compared, 2U);
}

TEST_F(ProcessLiveTest, CountsPagesAsTheKernelDoesAfterForkAndExec) {
  for (int i = 0; i < 20; ++i) {
    const Pid pid = Spawn("/bin/sleep", {"60"});
    EXPECT_TRUE(WaitFor([&] { return Maps(pid, "/usr/bin/sleep"); }));
    EXPECT_TRUE(AgreesWithTheKernel(pid)) << sink_.Of(pid).exec_pages << " " << *ExecVm(pid);
    Kill(pid);
  }
  EXPECT_EQ(tracker_->counters().rechecks, 0U);
}

TEST_F(ProcessLiveTest, KnowsWhatLoadersTakeAwayAgain) {
  const Pid pid = Spawn(TEXT_FIRST_PROGRAM, {});
  EXPECT_TRUE(WaitFor([&] { return Maps(pid, TEXT_FIRST_PROGRAM); }));
  EXPECT_TRUE(AgreesWithTheKernel(pid)) << sink_.Of(pid).exec_pages << " " << *ExecVm(pid);
  Kill(pid);
  EXPECT_TRUE(Recheck(Self()));
  void* const library = ::dlopen(TEXT_FIRST_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_TRUE(WaitFor([&] { return Maps(Self(), TEXT_FIRST_LIBRARY); }));
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  ::dlclose(library);
}

TEST_F(ProcessLiveTest, LearnsFromProcWhatIsUnloaded) {
  const std::string copy = CopyOf(PathOfLibrary("libz.so.1"), "libunloaded.so");
  // What was unloaded to learn that path, nobody told of.
  EXPECT_TRUE(Recheck(Self()));
  void* const library = ::dlopen(copy.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const Address function(reinterpret_cast<uint64_t>(::dlsym(library, "crc32")));
  EXPECT_TRUE(WaitFor([&] { return Maps(Self(), copy); }));
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  const MonotonicTime loaded = MonotonicNow();
  ::dlclose(library);
  EXPECT_GT(sink_.Of(Self()).exec_pages, *ExecVm(Self())) << "munmap is not reported";
  EXPECT_TRUE(Recheck(Self()));
  EXPECT_FALSE(Maps(Self(), copy));
  EXPECT_EQ(tracker_->counters().rechecks, 2U);
  const ProcessKey self{Self(), StartOf(Self())};
  EXPECT_EQ(PathOf(Resolve(self, ExecId(1), function, loaded)), copy) << "as it was then";

  void* const again = ::dlopen(copy.c_str(), RTLD_NOW);
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  const Address now(reinterpret_cast<uint64_t>(::dlsym(again, "crc32")));
  EXPECT_EQ(IsShifting(Self(), now), now == function) << "the place where one was unloaded";
  EXPECT_FALSE(IsShifting(Self(), Address(reinterpret_cast<uint64_t>(&AllInProgramOne))));
  ::dlclose(again);
}

TEST_F(ProcessLiveTest, CountsPagesWhoseProtectionChanges) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(Recheck(Self()));
  void* const memory =
      ::mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Address start(reinterpret_cast<uint64_t>(memory));
  const uint64_t before = *ExecVm(Self());
  const auto protect = [&](size_t first, size_t count, int protection) {
    return ::mprotect(static_cast<char*>(memory) + first * page, count * page, protection);
  };
  ASSERT_EQ(protect(0, 8, PROT_READ | PROT_EXEC), 0);
  EXPECT_EQ(ExecVm(Self()), before + 8);
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  ASSERT_EQ(protect(2, 3, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  EXPECT_EQ(ExecVm(Self()), before + 5);
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  ASSERT_EQ(protect(0, 8, PROT_READ | PROT_EXEC), 0);
  EXPECT_EQ(ExecVm(Self()), before + 8);
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  ASSERT_EQ(protect(0, 8, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(ExecVm(Self()), before);
  EXPECT_TRUE(Recheck(Self())) << "not reported";
  ASSERT_EQ(protect(0, 8, PROT_READ | PROT_EXEC), 0);
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  EXPECT_FALSE(IsShifting(Self(), start)) << "a JIT does nothing else";
  ::munmap(memory, 8 * page);
}

TEST_F(ProcessLiveTest, TellsWhatWasMappedAtAMoment) {
  const ProcessKey self{Self(), StartOf(Self())};
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(Recheck(Self()));
  const MonotonicTime before = MonotonicNow();
  void* const memory =
      ::mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto has_it = [&](MonotonicTime when) {
    const std::optional<ProgramMappings> then = tracker_->MappingsAt(self, ExecId(1), when);
    return then && std::ranges::any_of(then->mappings, [&](const ObjectMapping& mapping) {
             return mapping.Contains(Address(reinterpret_cast<uint64_t>(memory)));
           });
  };
  EXPECT_TRUE(has_it(MonotonicNow())) << "it applies what has not been read yet";
  EXPECT_FALSE(has_it(before));
  const auto now = tracker_->MappingsAt(self, ExecId(1), MonotonicNow());
  ASSERT_TRUE(now.has_value());
  EXPECT_TRUE(now->complete);
  EXPECT_EQ(now->exec_pages, ExecVm(Self()));
  ::munmap(memory, page);
  EXPECT_FALSE(tracker_->MappingsAt({Pid(0x7fffffff), StartTime(1)}, ExecId(1), before));
}

// Not a bound: figures for the module's README.
TEST_F(ProcessLiveTest, ReportsItsLatencyAndItsCost) {
  if (IsEmulated()) GTEST_SKIP() << "an emulated machine's figures say nothing";
  std::vector<double> latencies;
  const auto cpu = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  };
  const ProcessCounters counted = tracker_->counters();
  const MonotonicTime begin = MonotonicNow();
  const double cpu_before = cpu();
  // In a process of its own, so that spawning is not counted as ours.
  const std::string loop = "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i+1)); sleep 0.001; done";
  const Pid shell = Spawn("/bin/sh", {"-c", loop});
  Reap(shell);
  const double used = cpu() - cpu_before;
  const ProcessCounters after = tracker_->counters();
  const double seconds = static_cast<double>(MonotonicNow().value() - begin.value()) / 1e9;
  const double processes = static_cast<double>(after.exec_records - counted.exec_records);
  std::printf(
      "%.0f processes/s: %.1f us of cpu each, %.2f %% of a core; %.1f events, %.1f publishes "
      "each\n",
      processes / seconds, used / processes * 1e6, used / seconds * 100,
      static_cast<double>(after.mmap_records - counted.mmap_records) / processes,
      static_cast<double>(after.publishes - counted.publishes) / processes);
  for (int i = 0; i < 100; ++i) {
    const MonotonicTime start = MonotonicNow();
    const Pid pid = Spawn("/bin/sleep", {"60"});
    ASSERT_TRUE(WaitFor([&] { return Maps(pid, "/usr/bin/sleep"); }));
    latencies.push_back(static_cast<double>(sink_.Of(pid).first.value() - start.value()) / 1e3);
    Kill(pid);
  }
  std::ranges::sort(latencies);
  std::printf("spawn to publish: median %.0f us, p90 %.0f us, worst %.0f us\n", latencies[50],
              latencies[90], latencies.back());
  EXPECT_GT(processes, 1000);
}

}  // namespace
}  // namespace pyrometer
