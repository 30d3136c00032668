// SPDX-License-Identifier: Apache-2.0
#include "profiler/profiler.h"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/await_until.h"

namespace pyrometer {
namespace {

// Windows that wait to be named. Beyond that the oldest goes, and says so.
constexpr size_t kWaitingWindows = 16;
// What is made of files, without what is in the spill file. Without that the largest library's
// unwind table takes 4 MB.
constexpr size_t kStoreBytes = size_t{36} << 20;
// What is mapped now has its tables before the first tick, as far as that takes no longer.
constexpr std::chrono::milliseconds kLoadingTimeAtStart(300);

Symbolizer::Options NamingOptions(const Profiler::Machine& machine) {
  Symbolizer::Options options{
      .kernel = machine.kernel_symbols,
      .naming = {.inlines = machine.inlines, .demangling = machine.demangling}};
  options.symbol_tables.idle_bytes = 0;  // the store keeps them
  if (machine.spill != nullptr) options.symbol_tables.max_spilled = machine.spill->share();
  return options;
}

SpillStats SpillOf(const SpillFile* file) {
  if (file == nullptr) return {};
  return {
      .bytes = file->bytes(), .room = file->most(), .in_memory = file->is_in_memory() ? 1U : 0U};
}

}  // namespace

Profiler::Profiler(Machine machine, KernelSymbols symbols, std::chrono::nanoseconds longest_window,
                   std::shared_ptr<KernelMachine> owned)
    : kernel_(std::move(owned)),
      machine_(std::move(machine)),
      store_({.indexer = machine_.indexer,
              .workers = machine_.question_threads,
              .spill = machine_.spill},
             kStoreBytes),
      debug_files_({.processes = machine_.processes,
                    .indexer = machine_.indexer,
                    .files = machine_.files,
                    .workers = machine_.question_threads,
                    .clock = machine_.clock,
                    .procfs = machine_.procfs}),
      tables_({.processes = machine_.processes,
               .indexer = machine_.indexer,
               .workers = machine_.question_threads,
               .store = store_,
               .debug_files = debug_files_,
               .clock = machine_.clock},
              [this] {
                machine_.tables.Wake();
                machine_.cold.Wake();
              }),
      debug_info_(store_, machine_.clock, debug_files_),
      symbols_(store_, machine_.clock,
               [this](const SampledObject& object, const ArtifactStore::ContentRef& content) {
                 ReadDebugInfo(object, content);
               }),
      loader_(machine_.tables, tables_, machine_.clock,
              [this] {
                if (!consumers_.empty()) symbols_.ReadAhead(machine_.processes.TakeSampled());
              }),
      cold_({.source = machine_.cold,
             .processes = machine_.processes,
             .tables = tables_,
             .kernel_tables = machine_.tables,
             .clock = machine_.clock}),
      consumers_(longest_window, machine_.clock),
      taken_(kWaitingWindows),
      loop_({.source = machine_.windows,
             .cold = cold_,
             .consumers = consumers_,
             .out = taken_,
             .clock = machine_.clock,
             .log = machine_.log}),
      namer_({.store = store_,
              .symbols = symbols_,
              .debug_info = machine_.dwarf ? &debug_info_ : nullptr,
              .indexer = machine_.indexer,
              .clock = machine_.clock,
              .name_again = machine_.name_again},
             std::move(symbols), NamingOptions(machine_)) {
  loader_.LoadAll(kLoadingTimeAtStart);
  loading_thread_ = std::jthread([this](const std::stop_token& stop) { loader_.Run(stop); });
  unwinding_thread_ = std::jthread([this](const std::stop_token& stop) { cold_.Run(stop); });
  naming_thread_ = std::jthread([this] { RunNaming(); });
  sampling_thread_ = std::jthread([this](const std::stop_token& stop) { RunSampling(stop); });
}

// Consumers may ask for things until they have returned.
Profiler::~Profiler() {
  Stop(machine_.clock.Now());
  naming_thread_.join();
  consumers_.Close();
}

Result<void> Profiler::Start() {
  Result<void> started;
  Do([this, &started] {
    started = loop_.Start();
    sampling_ = started.has_value();
  });
  return started;
}

bool Profiler::Stop(MonotonicTime until) {
  namer_.GiveUpAt(until);
  machine_.files->GiveUpAt(std::min(until, After(machine_.clock.Now(), kTimeForWhatHangs)));
  Do([this, until] {
    if (std::exchange(sampling_, false)) loop_.Finish(until);
    taken_.Close();
  });
  store_.StopUnwindTables();
  loading_thread_.request_stop();
  symbols_.StopReadingAhead();
  debug_info_.StopReadingAhead();
  unwinding_thread_.request_stop();
  bool named = false;
  {
    const absl::MutexLock lock(&mutex_);
    AwaitUntil(mutex_, machine_.clock, until,
               [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return named_; });
    named = named_;
  }
  return named && consumers_.Close(until);
}

// Ahead of the window, once there are names. A Go program tells its source itself.
void Profiler::ReadDebugInfo(const SampledObject& object,
                             const ArtifactStore::ContentRef& symbols) {
  const std::shared_ptr<const SymbolTable> table = store_.SymbolsOf(symbols);
  const bool is_wanted = machine_.dwarf && table != nullptr && table->layout().sources == 0;
  if (is_wanted) debug_info_.ReadAhead(std::span(&object, 1));
}

ConsumerId Profiler::Attach(WindowConsumer& consumer, const WindowPeriod& period) {
  ConsumerId id = 0;
  Do([&] {
    const uint64_t first = sampling_ ? loop_.BeginWindow() : 0;
    id = consumers_.Attach(consumer, period, Now(), first);
  });
  return id;
}

void Profiler::SetPeriod(ConsumerId consumer, const WindowPeriod& period) {
  Do([&] { consumers_.SetPeriod(consumer, period, Now()); });
}

void Profiler::Detach(ConsumerId consumer) {
  consumers_.Detach(consumer);
}

Result<void> Profiler::Change(const SamplingChange& change) {
  Result<void> changed;
  Do([&] {
    changed = sampling_ ? loop_.Change(change) : Fail(ErrorCode::kInvalid, "it does not sample");
  });
  return changed;
}

bool Profiler::AnyWantedPid() {
  bool any = false;
  Do([&] { any = machine_.windows.AnyWantedPid(); });
  return any;
}

void Profiler::ForgetWantedPid(Pid pid) {
  Do([&] { machine_.windows.ForgetWantedPid(pid); });
}

Result<void> Profiler::WantCgroup(uint64_t cgroup) {
  Result<void> wanted;
  Do([&] { wanted = machine_.windows.WantCgroup(cgroup); });
  return wanted;
}

void Profiler::RunSampling(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "sampling");
  std::unique_lock lock(tasks_mutex_);
  while (!stop.stop_requested()) {
    if (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
      continue;
    }
    const auto has_task = [this] { return !tasks_.empty(); };
    if (!sampling_) {
      tasks_changed_.wait(lock, stop, has_task);
      continue;
    }
    lock.unlock();
    const std::chrono::nanoseconds time = loop_.Step();
    lock.lock();
    tasks_changed_.wait_for(lock, stop, time, has_task);
  }
}

// On the sampling thread, between two steps; returns when it is done.
void Profiler::Do(std::function<void()> task) {
  // Shared: it is still in use when we may go on.
  const auto done = std::make_shared<std::promise<void>>();
  {
    const std::lock_guard lock(tasks_mutex_);
    tasks_.emplace_back([done, task = std::move(task)] {
      task();
      done->set_value();
    });
    tasks_changed_.notify_all();
  }
  done->get_future().wait();
}

void Profiler::RunNaming() {
  ::pthread_setname_np(::pthread_self(), "naming");
  while (std::optional<TakenWindow> taken = taken_.Pop()) {
    Note(taken->missed);
    ResolvedWindow resolved = machine_.processes.Resolve(std::move(taken->window));
    tables_.Forget(resolved.unused);
    if (machine_.readers != nullptr) machine_.readers->EndLongIdle();
    if (consumers_.empty()) {
      namer_.Skip(resolved);
      symbols_.Forget(resolved.unused);
      debug_info_.Forget(resolved.unused);
    } else {
      consumers_.Offer(taken->number, namer_.Name(std::move(resolved), taken->is_last),
                       taken->ended, taken->missed);
    }
  }
  const absl::MutexLock lock(&mutex_);
  named_ = true;
}

void Profiler::Note(std::span<const MissedWindow> missed) {
  const absl::MutexLock lock(&mutex_);
  for (const MissedWindow& one : missed) {
    not_named_ += one.accounting.lost[Accounting::kWindowDropped];
  }
}

Accounting Profiler::accounting() const {
  Accounting all = machine_.windows.accounting();
  const absl::MutexLock lock(&mutex_);
  all.exported -= std::min(all.exported, not_named_);
  all.lost[Accounting::kWindowDropped] += not_named_;
  return all;
}

ProfilerStats Profiler::stats() const {
  return {.ticks = accounting(),
          .windows = loop_.counters(),
          .windows_not_named = taken_.dropped(),
          .windows_waiting = taken_.size(),
          .consumers = consumers_.counters(),
          .sampler = machine_.sampler_counters(),
          .cold = cold_.counters(),
          .store = store_.counters(),
          .readers =
              machine_.readers == nullptr ? ReaderPool::Counters() : machine_.readers->counters(),
          .symbols_read_ahead = symbols_.counters().read_ahead,
          .debug_info = debug_info_.counters(),
          .without_debug_info = namer_.without_debug_info(),
          .tables = tables_.counters(),
          .loading = loader_.counters(),
          .processes = machine_.processes.counters(),
          .names = namer_.counts(),
          .spill = SpillOf(machine_.spill.get())};
}

}  // namespace pyrometer
