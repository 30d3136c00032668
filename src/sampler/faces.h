// SPDX-License-Identifier: Apache-2.0
// The four sides of the sampler, one for each thread that works with it. `Sampler` (sampler.h)
// implements them over the kernel; tests of those who call them use others.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/cold_sample.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"
#include "pyrometer/sampling.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// Ticks, and the windows in which they are counted. Start, then Drain until Stop, then Drain once
// more. One thread, unless said otherwise.
class WindowSource {
 public:
  virtual ~WindowSource() = default;

  // Ticks begin on every online CPU. Errors: kPermission, kUnsupported.
  virtual Result<void> Start() = 0;

  // Samples CPUs that came online, lets go of those that went. Call it about every second.
  virtual Result<void> FollowCpus() = 0;

  // Ticks end. Those that happened are still to be drained.
  virtual void Stop() = 0;

  // True if the window's maps fill up and should be drained before the window is over.
  virtual bool NearlyFull() const = 0;

  // For at least this long NearlyFull() stays false, even if every tick hits another stack.
  virtual std::chrono::nanoseconds TimeUntilNearlyFull() const = 0;

  // Checks and prepares a change, which the next Drain() that ends a window makes at the very end
  // of it: each tick is judged, and later scaled, by what held in its own window. A second call
  // before that adds to the first. Errors: kUnsupported, kInvalid, kExhausted; then nothing
  // changes.
  virtual Result<void> Prepare(const SamplingChange& change) = 0;

  // Ends the window under way, and hands it out with its times, frequency and accounting. After an
  // error nothing is lost: the next call hands out those ticks, too, or first if HasLeftover().
  virtual Result<Window> Drain() = 0;

  // True if a failed attempt left a window that the next Drain() hands out by itself, as its
  // frequency is not that of the one under way, which goes on: nothing that was prepared holds
  // then.
  virtual bool HasLeftover() const = 0;

  // From now on tasks in this cgroup (version 2, a kernfs id) and below it are not sampled: their
  // ticks count as filtered, before any work is done for them. Below means up to 31 levels: tasks
  // nested deeper are sampled. Errors: kExhausted if too many are denied. Any thread.
  virtual Result<void> Deny(uint64_t cgroup) = 0;
  virtual void Allow(uint64_t cgroup) = 0;

  // False if the filter has pids and all these processes have exited, and so have the children
  // that were followed.
  virtual bool AnyWantedPid() const = 0;
  // For a pid that turned out to be gone already.
  virtual void ForgetWantedPid(Pid pid) = 0;

  // Since Start. Any thread.
  virtual Accounting accounting() const = 0;
};

// What every process has mapped, on its way into the kernel. One call at a time.
class MappingTarget {
 public:
  virtual ~MappingTarget() = default;

  // The executable mappings of a process, sorted and disjoint: all there are, replacing what was
  // known. `exec_pages`: see pyro_process. If there is no room the process stays unknown to the
  // kernel side, which only costs.
  virtual void Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
                       std::span<const PublishedMapping> mappings) = 0;
  virtual void Withdraw(Pid pid) = 0;

  // Gives back what was published and is not in use any more. Publish does it too.
  virtual void ReleaseWithdrawn() = 0;

  // All tasks with what /proc does not tell: exec ids.
  virtual Result<std::vector<pyro_task_record>> ListTasks() const = 0;
};

// Unwind tables on their way into the kernel. One thread, but for Wake().
class TableTarget {
 public:
  virtual ~TableTarget() = default;

  // Objects of published mappings whose unwind tables the kernel side misses, each once until
  // Load().
  virtual std::vector<ObjectId> TakeWanted() = 0;

  // An empty table says that there is no call frame information. What exceeds the budget stays out
  // until samples need it; user space unwinds them meanwhile.
  virtual void Load(ObjectId object, const UnwindTable& table) = 0;

  // Returns when an object was published for the first time, after Wake(), or when the time is
  // over; sometimes earlier.
  virtual void Wait(std::chrono::milliseconds most) = 0;
  virtual void Wake() = 0;
};

// Samples that the kernel side could not unwind. One thread, but for Wake().
class ColdSource {
 public:
  virtual ~ColdSource() = default;

  // What was shipped since the last call. Never waits.
  virtual std::vector<ColdSample> Take() = 0;

  // Returns when many samples are there, after Wake(), or when the time is over; sometimes earlier.
  virtual void Wait(std::chrono::milliseconds most) = 0;
  virtual void Wake() = 0;
};

}  // namespace pyrometer
