// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/procfs.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"
#include "sampler/map_sizes.h"

namespace pyrometer {

// Which tasks are sampled: those that match any of the lists; all, if every list is empty.
struct SampleFilter {
  std::vector<Pid> pids;           // with the children they fork from now on
  std::vector<std::string> comms;  // process or thread names, cut to 15 bytes as the kernel does
  std::vector<uint64_t> cgroups;   // kernfs ids (inode numbers) of directories; with descendants
  // The version 1 controller ("cpu", "pids"...) whose hierarchy the cgroups are in; "": version 2.
  std::string cgroup_controller;
};

// Samples what runs on every CPU, in the kernel, and hands out the counts window by window.
// The only user of libbpf. Load, then Start, then Drain until Stop, then Drain once more.
//
// Thread safety: one thread calls everything but Publish and Withdraw, which belong to the
// thread that tracks processes.
class Sampler {
 public:
  struct Options {
    Hertz frequency{99};
    bool kernel_stacks = true;
    SampleFilter filter{};
    Procfs procfs{};   // whose sys tells which CPUs are online
    MapSizes sizes{};  // see MapSizes::For
  };

  // Loads and verifies the programs. The filter follows forks from here on; no ticks yet.
  // Errors: kPermission, kUnsupported (no BTF, kernel too old), each with what to do about it.
  static Result<std::unique_ptr<Sampler>> Load(const Options& options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // False if every process of filter.pids has exited, and so have the children that were followed.
  bool AnyWantedPid() const;
  // For a pid that turned out to be gone already.
  void ForgetWantedPid(Pid pid);

  // Ticks begin on every online CPU.
  Result<void> Start();

  // Opens events on CPUs that came online, lets go of those that went. Call it about every second.
  Result<void> FollowCpus();

  // Ticks end. Those that happened are still to be drained.
  void Stop();

  // True when the active half is filling up and should be drained before the window is over.
  bool NearlyFull() const;

  // Swaps the halves, waits for running programs, takes everything out of the one that was active.
  Result<Window> Drain();

  // Since Start.
  Accounting accounting() const;
  // Ticks that are in windows handed out so far: equals accounting().exported after the last Drain.
  uint64_t drained() const;
  // Children of filtered pids that were not followed, because the kernel's list was full.
  uint64_t missed_children() const;
  // Kernel memory of all maps (bytes_memlock), in bytes.
  uint64_t map_bytes() const;
  // Kernel id of the sampling program.
  uint32_t tick_program_id() const;

  // All tasks with what /proc does not tell: exec ids.
  Result<std::vector<pyro_task_record>> ListTasks() const;

  // Tells the kernel side the executable mappings of a process, sorted and disjoint: all there
  // are, replacing what it knew. If the pool is full the process stays unknown, which only costs.
  void Publish(const ProcessKey& process, ExecId exec, std::span<const ObjectMapping> mappings);
  void Withdraw(Pid pid);

 private:
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
