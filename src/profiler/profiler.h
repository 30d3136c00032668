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

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "foreign/foreign_files.h"
#include "foreign/indexer.h"
#include "foreign/question_threads.h"
#include "foreign/reader_pool.h"
#include "indexer/artifact_store.h"
#include "process/process_knowledge.h"
#include "profiler/cold_unwinder.h"
#include "profiler/consumers.h"
#include "profiler/object_symbols.h"
#include "profiler/profiler_stats.h"
#include "profiler/sampling_loop.h"
#include "profiler/table_loader.h"
#include "profiler/unwind_tables.h"
#include "profiler/window_consumer.h"
#include "profiler/window_namer.h"
#include "pyrometer/demangling.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/sampling.h"
#include "sampler/faces.h"
#include "symbolize/kernel_symbols.h"

namespace pyrometer {

class ForeignFiles;
class KernelMachine;
class ProcessObserver;

// The engine: samples, unwinds and names, and hands every window to the attached consumers.
//
// Threads: `sampling` takes windows and carries out calls made here; `naming`; `table-loader`;
// `cold-unwinder`; one for each consumer. The process tracker has one of its own. Between sampling,
// naming and consumers are bounded queues that drop the oldest window and count it, so a slow
// stage never keeps the kernel's maps from being drained. See README.md.
//
// Thread-safe, except that one thread must make all calls of Start and Stop.
class Profiler {
 public:
  struct Options {
    const Clock& clock;  // must outlive the profiler
    Procfs procfs{};
    SampledEvent event{};
    Hertz frequency{99};  // of a clock
    bool kernel_stacks = true;
    bool inlines = true;  // functions that were inlined into others are frames
    bool dwarf = true;    // debug information is read: files, lines and inlined functions
    Demangling demangling = Demangling::kSimple;
    // The last window has the names that frames of earlier ones have by then: for those who add
    // windows up.
    bool name_again = false;
    SampleFilter filter{};
    // Kernel memory for rows of unwind tables, in bytes; nothing: see KernelMemory.
    std::optional<size_t> table_budget{};
    // The longest window, whatever the periods; ended processes are remembered for twice this.
    std::chrono::nanoseconds longest_window{std::chrono::seconds(10)};
    ProcessObserver* observer = nullptr;  // told of processes and mappings; outlives the profiler
    // Opens files of profiled programs; null: this process does, and hangs with their file systems.
    std::shared_ptr<ForeignFiles> files = nullptr;
    // Read them; null: this process does, and is at their mercy.
    std::shared_ptr<ReaderPool> readers = nullptr;
  };

  // What a profiler works with; all of it must outlive the profiler.
  struct Machine {
    WindowSource& windows;
    TableTarget& tables;
    ColdSource& cold;
    ProcessKnowledge& processes;
    std::shared_ptr<Indexer> indexer;
    QuestionThreads& question_threads;
    std::shared_ptr<ForeignFiles> files;
    const Clock& clock;
    Log& log;
    std::function<SamplerCounters()> sampler_counters;
    std::optional<Procfs> kernel_symbols;  // where to read symbols of modules loaded later
    Procfs procfs{};                       // leads to the host's root
    bool inlines = true;                   // see Options
    bool dwarf = true;                     // likewise
    Demangling demangling = Demangling::kSimple;
    bool name_again = false;
    std::shared_ptr<SpillFile> spill{};     // keeps what memory has no room for; null: nothing does
    std::shared_ptr<ReaderPool> readers{};  // what `indexer` has read files; null: it reads them
  };

  // A profiler of this machine: loads the kernel side, scans all processes and loads unwind tables;
  // ticks have not begun. Errors: kPermission, kUnsupported, each with what to do about it.
  static Result<std::unique_ptr<Profiler>> Open(const Options& options);

  // A profiler of any machine; `symbols` are those of its kernel. `owned` keeps what `machine`
  // refers to, unless the caller does.
  Profiler(Machine machine, KernelSymbols symbols, std::chrono::nanoseconds longest_window,
           std::shared_ptr<KernelMachine> owned = nullptr);

  // Stops, and waits for all threads, those of consumers included.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Begins ticks.
  Result<void> Start();

  // Ends ticks and hands the rest to the consumers. False if not all of it was done by `until`, by
  // the machine's clock: samples not unwound by then are marked kNotReady, and frames whose symbols
  // were not read get made-up names. File systems and processes that do not answer are waited for
  // no longer than kTimeForWhatHangs. Windows still queued for consumers are consumed before the
  // destructor returns.
  static constexpr std::chrono::seconds kTimeForWhatHangs{2};
  bool Stop(MonotonicTime until);

  // From now on `consumer` gets every window that begins, on a thread of its own. It must outlive
  // the profiler, or be detached.
  ConsumerId Attach(WindowConsumer& consumer, const WindowPeriod& period);
  // Changes how long its periods are, without a gap: the one under way is now the first of the new
  // length.
  void SetPeriod(ConsumerId consumer, const WindowPeriod& period);
  // Returns when the consumer has consumed what is in its queue.
  void Detach(ConsumerId consumer);

  // Changes frequency or filter, and for that ends the window under way. Errors: kUnsupported,
  // kExhausted, and kInvalid, also before Start and after Stop, and for the frequency of a counted
  // event; then nothing changes.
  Result<void> Change(const SamplingChange& change);

  // Stops sampling tasks in a cgroup (version 2) and below it; Allow() undoes it. See WindowSource.
  Result<void> Deny(uint64_t cgroup) { return machine_.windows.Deny(cgroup); }
  void Allow(uint64_t cgroup) { machine_.windows.Allow(cgroup); }

  // Has the observer see every process again; see ProcessKnowledge.
  void ShowProcessesAgain() { machine_.processes.ShowAgain(); }

  // Gives a process other labels than the observer has, which has learned more; see
  // ProcessKnowledge.
  void ReplaceLabels(const ProcessKey& process, const LabelSet& of, LabelSet by) {
    machine_.processes.ReplaceLabels(process, of, std::move(by));
  }

  // About the pids in the filter; see WindowSource.
  bool AnyWantedPid();
  void ForgetWantedPid(Pid pid);
  // Samples this cgroup as well, where the filter has others; see WindowSource.
  Result<void> WantCgroup(uint64_t cgroup);

  // Gives up what is kept only because making it again takes time: unwind tables and symbol tables
  // that the kernel side or a window does not use now.
  void ShedCaches() { store_.DropKept(); }

  // What became of all ticks up to now. Windows dropped before they were named count as lost; what
  // a single consumer missed, it was told. What the observer took out of windows still counts as
  // exported, so that no count ever falls: see ProcessCounters::unwanted_samples.
  Accounting accounting() const;
  ProfilerStats stats() const;

 private:
  void RunSampling(const std::stop_token& stop);
  void RunNaming();
  void Note(std::span<const MissedWindow> missed);
  void ReadDebugInfo(const SampledObject& object, const ArtifactStore::ContentRef& symbols);
  void Do(std::function<void()> task);
  Moment Now() const { return {machine_.clock.Now(), machine_.clock.WallNow()}; }

  std::shared_ptr<KernelMachine> kernel_;  // what machine_ refers to, if this owns it
  const Machine machine_;
  ArtifactStore store_;
  DebugFiles debug_files_;
  UnwindTables tables_;
  ObjectSymbols debug_info_;
  ObjectSymbols symbols_;
  TableLoader loader_;
  ColdUnwinder cold_;
  Consumers consumers_;
  WindowLine<TakenWindow> taken_;
  SamplingLoop loop_;
  WindowNamer namer_;

  bool sampling_ = false;  // between Start and Stop; owned by the sampling thread
  // Not an absl::Mutex: that sleeps by the wall clock, and the sampling thread would until the old
  // time is reached again after somebody has set it back.
  std::mutex tasks_mutex_;
  std::condition_variable_any tasks_changed_;
  std::deque<std::function<void()>> tasks_;  // for the sampling thread; guarded by tasks_mutex_
  mutable absl::Mutex mutex_;
  bool named_ ABSL_GUARDED_BY(mutex_) = false;      // every window taken
  uint64_t not_named_ ABSL_GUARDED_BY(mutex_) = 0;  // samples of dropped windows

  std::jthread loading_thread_;
  std::jthread unwinding_thread_;
  std::jthread naming_thread_;
  std::jthread sampling_thread_;
};

}  // namespace pyrometer
