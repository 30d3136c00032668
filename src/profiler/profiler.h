// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "indexer/indexer.h"
#include "process/process_knowledge.h"
#include "profiler/cold_unwinder.h"
#include "profiler/consumers.h"
#include "profiler/profiler_stats.h"
#include "profiler/sampling_loop.h"
#include "profiler/table_loader.h"
#include "profiler/unwind_tables.h"
#include "profiler/window_consumer.h"
#include "profiler/window_namer.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/sampling.h"
#include "sampler/faces.h"
#include "symbolize/kernel_symbols.h"

namespace pyrometer {

class KernelMachine;
class ProcessObserver;

// The engine: samples, unwinds, names, and hands every window to whoever is attached. What differs
// between a recording and the agent is the consumer.
//
// Five threads: `sampling` takes windows and follows what is asked of it here, `table-loader`,
// `cold-unwinder`, `naming`, and one for each consumer; the process tracker has its own. Between
// them are lines in which the oldest window goes when there is no room, counted: nobody who is slow
// keeps the kernel's maps from being drained.
//
// Thread-safe, but for Start and Stop, which one thread calls.
class Profiler {
 public:
  struct Options {
    Procfs procfs{};
    Hertz frequency{99};
    bool kernel_stacks = true;
    SampleFilter filter{};
    size_t table_budget = size_t{64} << 20;  // kernel memory for unwind tables, in bytes
    // No window is longer, whatever the periods are; processes are remembered for two of them.
    std::chrono::nanoseconds longest_window{std::chrono::seconds(10)};
    ProcessObserver* observer = nullptr;  // told of processes and mappings; outlives the profiler
  };

  // What a profiler works with; all of it outlives it.
  struct Machine {
    WindowSource& windows;
    TableTarget& tables;
    ColdSource& cold;
    ProcessKnowledge& processes;
    Indexer& indexer;
    const Clock& clock;
    Log& log;
    std::function<SamplerCounters()> sampler_counters;
    std::optional<Procfs> kernel_symbols;  // where modules that are loaded later get names from
    Procfs procfs{};                       // where the host's root is
  };

  // This machine's: loads the kernel side, learns of all processes and loads unwind tables; no
  // ticks yet. Errors: kPermission, kUnsupported, each with what to do about it.
  static Result<std::unique_ptr<Profiler>> Open(const Options& options);

  // Any other's. `symbols`: its kernel's. `owned`: what `machine` refers to, if anybody else does
  // not keep it.
  Profiler(Machine machine, KernelSymbols symbols, std::chrono::nanoseconds longest_window,
           std::shared_ptr<KernelMachine> owned = nullptr);

  // Stops, and waits for all threads, the consumers' too.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Ticks begin.
  Result<void> Start();

  // Ticks end, and every consumer gets what there was. False if that was not all done by `until`:
  // samples that were not unwound are marked so, names are made up; windows that wait for consumers
  // are still consumed before the destructor returns.
  bool Stop(std::chrono::steady_clock::time_point until);

  // Gets every window that begins from now on, on a thread of its own. `consumer` outlives the
  // profiler, or is detached.
  ConsumerId Attach(WindowConsumer& consumer, const WindowPeriod& period);
  // Returns when the consumer is done with what it has got.
  void Detach(ConsumerId consumer);

  // Another frequency or filter from now on: the window under way ends. Errors: kUnsupported,
  // kInvalid, also before Start and after Stop, and kExhausted; then nothing changes.
  Result<void> Change(const SamplingChange& change);

  // Tasks of a cgroup (version 2) and of those below it are not sampled any more; see WindowSource.
  Result<void> Deny(uint64_t cgroup) { return machine_.windows.Deny(cgroup); }
  void Allow(uint64_t cgroup) { machine_.windows.Allow(cgroup); }

  // Of the pids in the filter; see WindowSource.
  bool AnyWantedPid();
  void ForgetWantedPid(Pid pid);

  // Where all ticks went, up to now. What was dropped unnamed is lost; what one consumer missed it
  // was told.
  Accounting accounting() const;
  ProfilerStats stats() const;

 private:
  void RunSampling(const std::stop_token& stop);
  void RunNaming();
  void Note(std::span<const MissedWindow> missed);
  void Do(std::function<void()> task);
  Moment Now() const { return {machine_.clock.Now(), machine_.clock.WallNow()}; }

  std::shared_ptr<KernelMachine> kernel_;  // what machine_ refers to, if this owns it
  const Machine machine_;
  UnwindTables tables_;
  TableLoader loader_;
  ColdUnwinder cold_;
  Consumers consumers_;
  WindowLine<TakenWindow> taken_;
  SamplingLoop loop_;
  WindowNamer namer_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> tasks_;  // for the sampling thread; guarded by mutex_
  bool sampling_ = false;                    // ticks have begun and not ended; of that thread
  bool named_ = false;                       // all there was; guarded by mutex_
  uint64_t not_named_ = 0;                   // samples that were dropped; guarded by mutex_

  std::jthread loading_thread_;
  std::jthread unwinding_thread_;
  std::jthread naming_thread_;
  std::jthread sampling_thread_;
};

}  // namespace pyrometer
