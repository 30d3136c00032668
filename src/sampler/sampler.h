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
#include "pyrometer/cold_sample.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"
#include "pyrometer/sampling.h"
#include "pyrometer/unwind_table.h"
#include "sampler/map_sizes.h"
#include "sampler/table_upload.h"

namespace pyrometer {

// What became of samples that the kernel side could not unwind by itself, since the beginning.
struct ColdCounters {
  uint64_t unknown_process = 0;  // shipped: nothing, or something else, was known of the process
  uint64_t unknown_place = 0;    // shipped: a mapping or a table was not there yet
  uint64_t exotic_rule = 0;      // shipped: a rule that only user space evaluates
  uint64_t hand_written = 0;     // shipped: code without call frame information
  uint64_t refused = 0;          // too many at a time: those stacks say so
};

// Samples what runs on every CPU, in the kernel, and hands out the counts window by window.
// The only user of libbpf. Load, then Start, then Drain until Stop, then Drain once more.
//
// Thread safety: one thread calls everything but Publish, Withdraw and ReleaseWithdrawn, which are
// called by one thread at a time (under the process tracker's lock), and TakeCold, TakeWantedTables
// and LoadTable, which belong to the thread that unwinds cold samples, as does WaitForCold. Any
// thread may call WakeCold.
class Sampler {
 public:
  struct Options {
    Hertz frequency{99};
    bool kernel_stacks = true;
    SampleFilter filter{};
    Procfs procfs{};   // whose sys tells which CPUs are online
    MapSizes sizes{};  // see MapSizes::For
    // For the rows of unwind tables, in bytes of kernel memory.
    size_t table_budget = size_t{64} << 20;
    // Samples that user space unwinds, at most, a CPU and second; and of one process.
    uint32_t cold_per_second = 1500;
    uint32_t cold_per_second_of_process = 1000;
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
  // How long it is not at least, whatever the ticks hit.
  std::chrono::nanoseconds TimeUntilNearlyFull() const;

  // Swaps the halves, waits for running programs, takes everything out of the one that was active.
  Result<Window> Drain();

  // Since Start.
  Accounting accounting() const;
  // Ticks that are in windows handed out so far: equals accounting().exported after the last Drain.
  uint64_t drained() const;
  // Children of filtered pids that were not followed, because the kernel's list was full.
  uint64_t missed_children() const;
  // Kernel id of the sampling program.
  uint32_t tick_program_id() const;

  // What the kernel side shipped since the last call; Stop() and Drain() come first at the end.
  std::vector<ColdSample> TakeCold();
  ColdCounters cold_counters() const;

  // Returns when many cold samples are there, when tables of something new are wanted, after
  // WakeCold, or when the time is over; sometimes earlier.
  void WaitForCold(std::chrono::milliseconds most);
  void WakeCold();

  // Objects of published mappings whose unwind tables the kernel side misses, each until LoadTable.
  std::vector<ObjectId> TakeWantedTables();
  // An empty table says that there is no call frame information. What exceeds the budget stays out
  // until samples need it; user space unwinds them meanwhile.
  void LoadTable(ObjectId object, const UnwindTable& table);

  // All tasks with what /proc does not tell: exec ids.
  Result<std::vector<pyro_task_record>> ListTasks() const;

  // Tells the kernel side the executable mappings of a process, sorted and disjoint: all there
  // are, replacing what it knew. `exec_pages`: see pyro_process. If the pool is full the process
  // stays unknown, which only costs.
  void Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
               std::span<const PublishedMapping> mappings);
  void Withdraw(Pid pid);

  // Gives back what was published and is not in use any more. Publish does it too.
  void ReleaseWithdrawn();

 private:
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
