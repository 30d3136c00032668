// SPDX-License-Identifier: Apache-2.0
// The tracker on this machine, with real processes. Needs the right to open perf events.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/procfs.h"
#include "process/process_directory.h"
#include "process/process_tracker.h"
#include "tests/shared/eventually.h"
#include "tests/unit/process/header_inspector.h"
#include "tests/unit/process/one_frame_window.h"
#include "tests/unit/process/patient_inspections.h"
#include "tests/unit/process/timing_sink.h"

extern char** environ;

namespace pyrometer {

inline bool WaitFor(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // not to starve the tracker
  }
  return true;
}

inline StartTime StartOf(Pid pid) {
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(Procfs{}, pid);
  return directory ? directory->Stat()->start : StartTime(0);
}

// True where scripts/vm-test runs this.
inline bool IsEmulated() {
  return std::getenv("PYROMETER_EMULATED") != nullptr;
}

inline Pid Self() {
  return Pid(static_cast<uint32_t>(::getpid()));
}

// As if a task iterator had run: every process is in its first program as far as we know.
inline Result<std::vector<TaskRecord>> AllInProgramOne() {
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

// Where the loader finds it. It must be one that has crc32().
inline std::string PathOfLibrary(const char* name) {
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
        ProcessTracker::Start(Patient(), inspector_, sink_, AllInProgramOne);
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

  ProcessTracker::Options Patient() const {
    return {.clock = clock_, .inspections = kPatient, .reader = kPatientReader};
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

  std::string CopyOf(const std::string& program, const std::string& name) const {
    const std::string copy = directory_ + "/" + name;
    std::filesystem::copy_file(program, copy);
    return copy;
  }

  // The object frame of `address` in that process at `when`, by way of a window that ends now.
  Frame Resolve(const ProcessKey& process, ExecId exec, Address address, MonotonicTime when) {
    Window window = OneFrameWindow(process, exec, Frame::User(address), when);
    window.end = MonotonicNow();
    return OnlyFrameOf(tracker_->Resolve(std::move(window)).window);
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

  const Clock clock_;
  std::shared_ptr<HeaderInspector> inspector_ = std::make_shared<HeaderInspector>();
  TimingSink sink_;
  std::unique_ptr<ProcessTracker> tracker_;
  std::string directory_;
};

}  // namespace pyrometer
