// SPDX-License-Identifier: Apache-2.0
// The four interfaces of the sampler, one for each thread that works with it. `Sampler` (sampler.h)
// implements them with the kernel; callers' tests use implementations of their own.
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

// Ticks, and the windows in which they are counted. Call Start, then Drain until Stop, then Drain
// once more. One thread, unless stated otherwise.
class WindowSource {
 public:
  virtual ~WindowSource() = default;

  // Begins ticks on every online CPU. Errors: kPermission, kUnsupported.
  virtual Result<void> Start() = 0;

  // Starts sampling CPUs that came online and stops on those that went offline. Call it about every
  // second.
  virtual Result<void> FollowCpus() = 0;

  // Ends ticks. Those that happened are still to be drained.
  virtual void Stop() = 0;

  // True if the window's maps are filling up and should be drained before the window is over.
  virtual bool NearlyFull() const = 0;

  // For at least this long NearlyFull() stays false, even if every tick hits another stack.
  virtual std::chrono::nanoseconds TimeUntilNearlyFull() const = 0;

  // Checks and prepares a change, which the next Drain() that ends a window makes exactly at its
  // end: the filter and frequency of its own window apply to each tick. A second call before that
  // adds to the first. Errors: kUnsupported, kInvalid, kExhausted; then nothing changes.
  virtual Result<void> Prepare(const SamplingChange& change) = 0;

  // Ends the window under way and returns it, with its times, frequency and accounting. After an
  // error nothing is lost: the next call hands out those ticks as well, or first if HasLeftover().
  virtual Result<Window> Drain() = 0;

  // True if a failed attempt left a window that the next Drain() hands out by itself, as its
  // frequency is not that of the one under way, which goes on: nothing that was prepared holds
  // then.
  virtual bool HasLeftover() const = 0;

  // From now on tasks in this cgroup (version 2, a kernfs id) and below it are not sampled: their
  // ticks count as filtered before any other work is done. Below means up to 31 levels: tasks
  // nested deeper are sampled. Errors: kExhausted if too many cgroups are denied. Any thread.
  virtual Result<void> Deny(uint64_t cgroup) = 0;
  virtual void Allow(uint64_t cgroup) = 0;

  // False if the filter has pids, and all these processes and their followed children have exited.
  virtual bool AnyWantedPid() const = 0;
  // For a pid that turns out to have exited already.
  virtual void ForgetWantedPid(Pid pid) = 0;

  // Adds a cgroup of the same hierarchy to a filter that has cgroups; others stay as they are.
  // Errors: kExhausted.
  virtual Result<void> WantCgroup(uint64_t cgroup) = 0;

  // Since Start. Any thread.
  virtual Accounting accounting() const = 0;
};

// Passes what every process has mapped to the kernel side. One call at a time, except for
// AwaitRoom().
class MappingTarget {
 public:
  virtual ~MappingTarget() = default;

  // Sets the executable mappings of a process: all there are, sorted and disjoint. `exec_pages`:
  // see pyro_process. Returns false without room: the process is unknown to the kernel side then,
  // and user space unwinds its samples; one that no tick used lately may have to make room for it.
  virtual bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
                       std::span<const PublishedMapping> mappings) = 0;
  virtual void Withdraw(Pid pid) = 0;

  // Releases what was published and is no longer in use. Publish does so too.
  virtual void ReleaseWithdrawn() = 0;

  // Forgets all processes but these, of whose ends we may not have heard.
  virtual void Sweep(std::span<const Pid> living) = 0;

  // Processes that found no room, or made it for others, and that ticks hit since: to be published
  // again. Call it about every second.
  virtual std::vector<Pid> TakeMissed() = 0;

  // Objects in whose mappings ticks were for the first time since they are published, leaves and
  // callers, as far as the kernel side unwound them; some others with them.
  virtual std::vector<ObjectId> TakeUsed() = 0;

  // If a process found no room for want of time, because what others had may still be read, waits
  // for that, some 10 ms or more: true if TakeMissed() now names it. One thread, beside any other.
  virtual bool AwaitRoom() = 0;

  // All tasks, with their exec ids, which /proc does not show.
  virtual Result<std::vector<pyro_task_record>> ListTasks() const = 0;
};

// Passes unwind tables to the kernel side. One thread, except for Need() and Wake().
class TableTarget {
 public:
  virtual ~TableTarget() = default;

  // Objects of published mappings whose unwind tables the kernel side lacks. Each is returned once
  // until Load().
  virtual std::vector<ObjectId> TakeWanted() = 0;

  // An empty table means that there is no call frame information. What exceeds the budget is left
  // out until samples need it; user space unwinds them meanwhile.
  // Returns false if no published mapping needs the object's table any more.
  virtual bool Load(ObjectId object, const UnwindTable& table) = 0;

  // A sample that was unwound in user space needed the rule for `address`: its rows are loaded
  // soon, if they are not in the kernel already. Any thread.
  virtual void Need(ObjectId object, ElfAddress address) = 0;

  // Returns when an object is published for the first time, after Wake(), or after `most`;
  // sometimes earlier.
  virtual void Wait(std::chrono::milliseconds most) = 0;
  virtual void Wake() = 0;
};

// Samples that the kernel side could not unwind. One thread, except for Wake().
class ColdSource {
 public:
  virtual ~ColdSource() = default;

  // The samples shipped since the last call. Never waits.
  virtual std::vector<ColdSample> Take() = 0;

  // Returns when many samples are waiting, after Wake(), or after `most`; sometimes earlier.
  virtual void Wait(std::chrono::milliseconds most) = 0;
  virtual void Wake() = 0;
};

}  // namespace pyrometer
