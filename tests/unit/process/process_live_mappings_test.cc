// SPDX-License-Identifier: Apache-2.0
// Executable memory, held against what the kernel counts (mm->exec_vm).
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "tests/unit/process/process_live_fixture.h"

namespace pyrometer {
namespace {

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

class ProcessLiveMappingsTest : public ProcessLiveTest {
 protected:
  // True as soon as what is published of a living process is what the kernel counts.
  bool AgreesWithTheKernel(Pid pid) {
    return WaitFor([&] { return sink_.Of(pid).exec_pages.count == ExecVm(pid); });
  }
  // A process that stops itself, and changes nothing from then on.
  static Pid SpawnStopped(const std::string& path, std::vector<std::string> arguments) {
    const Pid pid = Spawn(path, std::move(arguments));
    int status = 0;
    EXPECT_EQ(::waitpid(static_cast<pid_t>(pid.value()), &status, WUNTRACED), pid.value());
    EXPECT_TRUE(WIFSTOPPED(status)) << path;
    return pid;
  }
  bool Recheck(Pid pid) {
    tracker_->Recheck({pid, StartOf(pid)});
    return sink_.Of(pid).exec_pages.count == ExecVm(pid);
  }
  bool IsShifting(Pid pid, Address address) {
    const std::vector<PublishedMapping> mappings = sink_.Of(pid).mappings;
    return std::ranges::any_of(mappings, [&](const PublishedMapping& published) {
      return published.mapping.Contains(address) && published.shifting;
    });
  }
};

// Of processes of others nobody knows whether they change meanwhile.
TEST_F(ProcessLiveMappingsTest, CountsThePagesOfAScannedProcessAsTheKernelDoes) {
  const std::vector<Pid> stopped = {SpawnStopped("/bin/sh", {"-c", "kill -STOP $$"}),
                                    SpawnStopped("/bin/sh", {"-c", "/bin/true; kill -STOP $$"}),
                                    SpawnStopped(TEXT_FIRST_PROGRAM, {"stop"})};
  tracker_ = *ProcessTracker::Start(Patient(), inspector_, sink_, AllInProgramOne);
  for (const Pid pid : stopped) {
    EXPECT_GT(sink_.Of(pid).exec_pages.count, 0U);
    EXPECT_EQ(sink_.Of(pid).exec_pages.count, ExecVm(pid))
        << *ReadFile(fmt::format("/proc/{}/maps", pid.value()));
    Kill(pid);
  }
  EXPECT_EQ(sink_.Of(Self()).exec_pages.count, ExecVm(Self()));
}

TEST_F(ProcessLiveMappingsTest, CountsPagesAsTheKernelDoesAfterForkAndExec) {
  for (int i = 0; i < 20; ++i) {
    const Pid pid = Spawn("/bin/sleep", {"60"});
    EXPECT_TRUE(WaitFor([&] { return Maps(pid, "/usr/bin/sleep"); }));
    EXPECT_TRUE(AgreesWithTheKernel(pid)) << sink_.Of(pid).exec_pages.count << " " << *ExecVm(pid);
    Kill(pid);
  }
  EXPECT_EQ(tracker_->counters().rechecks, 0U);
}

TEST_F(ProcessLiveMappingsTest, KnowsWhatLoadersTakeAwayAgain) {
  const Pid pid = Spawn(TEXT_FIRST_PROGRAM, {});
  EXPECT_TRUE(WaitFor([&] { return Maps(pid, TEXT_FIRST_PROGRAM); }));
  EXPECT_TRUE(AgreesWithTheKernel(pid)) << sink_.Of(pid).exec_pages.count << " " << *ExecVm(pid);
  Kill(pid);
  EXPECT_TRUE(Recheck(Self()));
  void* const library = ::dlopen(TEXT_FIRST_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_TRUE(WaitFor([&] { return Maps(Self(), TEXT_FIRST_LIBRARY); }));
  EXPECT_TRUE(AgreesWithTheKernel(Self()));
  ::dlclose(library);
}

TEST_F(ProcessLiveMappingsTest, LearnsFromProcWhatIsUnloaded) {
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
  EXPECT_GT(sink_.Of(Self()).exec_pages.count, *ExecVm(Self())) << "munmap is not reported";
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

TEST_F(ProcessLiveMappingsTest, CountsPagesWhoseProtectionChanges) {
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

TEST_F(ProcessLiveMappingsTest, TellsWhatWasMappedAtAMoment) {
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

}  // namespace
}  // namespace pyrometer
