// SPDX-License-Identifier: Apache-2.0
// process_cost: what it costs to know every process. A shell forks and execs /bin/true, then
// processes are spawned that live. Prints how many a second that were, the CPU time of each, as us
// and as a share of a core, how many records and publishes each causes, and how long it takes from
// the spawn until its program is published: median, 90 % and worst, in us.
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/procfs.h"
#include "process/proc_scan.h"
#include "process/process_directory.h"
#include "process/process_tracker.h"
#include "tests/unit/process/header_inspector.h"
#include "tests/unit/process/timing_sink.h"

extern char** environ;

namespace pyrometer {
namespace {

constexpr int kForked = 600;   // each with a sleep of a ms after it, which is a process too
constexpr int kSpawned = 100;  // one after the other

// As if a task iterator had run: every process is in its first program as far as we know.
Result<std::vector<TaskRecord>> AllInProgramOne() {
  std::vector<TaskRecord> tasks;
  const MonotonicTime now = MonotonicNow();
  ASSIGN_OR_RETURN(const std::vector<Pid> pids, ListProcesses(Procfs{}));
  for (const Pid pid : pids) {
    const Result<ProcessDirectory> directory = ProcessDirectory::Open(Procfs{}, pid);
    if (!directory) continue;
    const Result<ProcStat> stat = directory->Stat();
    if (stat) tasks.push_back({pid, Tid(pid.value()), stat->start, ExecId(1), now});
  }
  return tasks;
}

double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

pid_t Spawn(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  return ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0 ? pid : -1;
}

// The processes are a shell's, so that spawning them is not counted as ours.
bool MeasureCost(const ProcessTracker& tracker) {
  const ProcessCounters before = tracker.counters();
  const MonotonicTime begin = MonotonicNow();
  const double cpu = CpuSeconds();
  const pid_t shell =
      Spawn({"/bin/sh", "-c",
             fmt::format("i=0; while [ $i -lt {} ]; do /bin/true; i=$((i+1)); sleep 0.001; done",
                         kForked)});
  if (shell < 0 || ::waitpid(shell, nullptr, 0) != shell) return false;
  const double used = CpuSeconds() - cpu;
  const double seconds = std::chrono::duration<double>(Between(begin, MonotonicNow())).count();
  const ProcessCounters after = tracker.counters();
  const auto processes = static_cast<double>(after.exec_records - before.exec_records);
  if (processes < 2 * kForked) return false;
  fmt::print("{:.0f} {:.1f} {:.2f} {:.1f} {:.1f}", processes / seconds, used / processes * 1e6,
             used / seconds * 100,
             static_cast<double>(after.mmap_records - before.mmap_records) / processes,
             static_cast<double>(after.publishes - before.publishes) / processes);
  return true;
}

bool IsPublished(const ProcessTracker& tracker, TimingSink& sink, Pid pid) {
  return std::ranges::any_of(sink.Of(pid).mappings, [&](const PublishedMapping& published) {
    const std::optional<ObjectInfo> object = tracker.Object(published.mapping.object);
    return object && object->path.ends_with("/sleep");
  });
}

bool MeasureLatency(const ProcessTracker& tracker, TimingSink& sink) {
  std::vector<double> latencies;
  for (int i = 0; i < kSpawned; ++i) {
    const MonotonicTime start = MonotonicNow();
    const pid_t child = Spawn({"/bin/sleep", "60"});
    if (child < 0) return false;
    const Pid pid(static_cast<uint32_t>(child));
    while (!IsPublished(tracker, sink, pid)) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // not to starve the tracker
    }
    using Microseconds = std::chrono::duration<double, std::micro>;
    latencies.push_back(Microseconds(Between(start, sink.Of(pid).first)).count());
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::ranges::sort(latencies);
  fmt::print(" {:.0f} {:.0f} {:.0f}\n", latencies[kSpawned / 2], latencies[kSpawned * 9 / 10],
             latencies.back());
  return true;
}

int Run() {
  const Clock clock;
  TimingSink sink;
  const auto tracker = ProcessTracker::Start({.clock = clock}, std::make_shared<HeaderInspector>(),
                                             sink, AllInProgramOne);
  if (!tracker) {
    fmt::print(stderr, "process_cost: {}\n", tracker.error().message());
    return 1;
  }
  return MeasureCost(**tracker) && MeasureLatency(**tracker, sink) ? 0 : 1;
}

}  // namespace
}  // namespace pyrometer

int main() {
  return pyrometer::Run();
}
