// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "process/boot_clock.h"
#include "pyrometer/profile.h"
#include "pyrometer/sample.h"
#include "tests/scale/engine.h"
#include "tests/scale/fleet.h"

namespace pyrometer::scale {

// What happened, and what became of it.
struct Tally {
  uint64_t events = 0;
  uint64_t processes = 0;
  uint64_t containers = 0;
  // User frames in files.
  uint64_t right = 0;
  uint64_t unnamed = 0;
  uint64_t wrong = 0;  // with the name of another file's function
};

// All that happens on the machine, window by window. Processes come and go in containers, threads
// in their first processes, which also make code; a tenth of the containers are deployed anew each
// day, half of them with a new release; and once a day records are lost. The same in every run.
class Life {
 public:
  Life(const Scale& scale, Fleet& fleet, Engine& engine, SimulatedClock& clock);

  // The machine as it is when somebody begins to look.
  void Begin();
  // Calls `look` after each window.
  void RunDay(const std::function<void()>& look);

  const Tally& tally() const { return tally_; }

 private:
  struct Process {
    std::shared_ptr<const Container> container;
    ProcessKey key;
    ExecId exec;
    uint64_t base = 0;
    size_t first_file = 0;
    size_t files = 0;  // that it maps
    MonotonicTime begin;
    MonotonicTime end;
  };
  using Running = std::multimap<MonotonicTime, Process>;  // by their ends

  void RunWindow(MonotonicTime end);
  void Happen(MonotonicTime until);
  void Add(ProcessEvent event);
  // A little later than before.
  MonotonicTime Tick() { return now_ = MonotonicTime(now_.value() + 10'000); }
  uint32_t NextId();
  ProcessKey Fork(Pid parent);
  void Map(Pid pid, uint64_t base, const Container& container, size_t first, size_t count);
  std::shared_ptr<Container> StartContainer(uint32_t number, uint32_t release);
  // How many releases a container is behind the newest one after years like this: else every day
  // would have more of them side by side than the one before.
  uint32_t Outdated();
  void StopContainer(const Container& container);
  void StartProcess();
  void ReplaceThread();
  void MakeCode();
  void LoadKernelCode();
  void LoseRecords();
  Running::iterator End(Running::iterator process, MonotonicTime when);

  Window MakeWindow(MonotonicTime begin, MonotonicTime end);
  Process AnyProcess();
  void AddSample(const Process& process, Window& window);
  Frame FrameIn(const Process& process, size_t file);
  void Judge(const NamedWindow& named);
  void JudgeFrame(const Sample& sample, const Location& location, bool is_leaf);

  uint32_t Draw(uint64_t limit) { return static_cast<uint32_t>(random_() % limit); }
  // How many of `per_day` come within the next slice.
  uint32_t Due(double per_day, double& owed);

  const Scale scale_;
  Fleet& fleet_;
  Engine& engine_;
  SimulatedClock& clock_;
  const BootClock boot_ = BootClock::Now();
  std::mt19937_64 random_{1};
  MonotonicTime now_;
  std::vector<std::shared_ptr<Container>> containers_;
  std::vector<uint32_t> releases_;  // by image
  Running running_;
  std::vector<Process> ended_;            // in this window
  absl::flat_hash_set<uint32_t> ids_{1};  // of processes and threads, in use
  uint32_t last_id_ = 1;
  Tally tally_;
  double owed_processes_ = 0;
  double owed_containers_ = 0;
};

}  // namespace pyrometer::scale
