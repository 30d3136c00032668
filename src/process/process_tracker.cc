// SPDX-License-Identifier: Apache-2.0
#include "process/process_tracker.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "base/system_error.h"
#include "process/kernel_events.h"
#include "process/process_history.h"
#include "process/process_showing.h"
#include "process/resync_schedule.h"

namespace pyrometer {
namespace {

// An exec with its first four mappings is some 600 bytes on one CPU: it wakes us when it is whole.
// Waking for every record costs twice the CPU per process (115 us instead of 65 us, and the
// profiled program pays for the interrupt) and publishes 0.4 ms earlier (measured 2026-11, 2 CPUs).
constexpr uint32_t kWakeupBytes = 512;
// Lone records must not wait for the watermark: files of a process that lives 5 ms should be
// opened while it lives, and a small static program's exec is less than 512 bytes (with 100 ms, one
// in twelve samples of such programs had no names).
constexpr std::chrono::milliseconds kBusyInterval(10);
// After so long without a record the next one wakes us. Sooner would be one more wakeup for each of
// 200 processes a second.
constexpr std::chrono::milliseconds kCalm(200);
constexpr auto kRescanInterval = std::chrono::seconds(1);
// So long is a turn while all of /proc is read, and for so long nothing of it is read then unless
// events come: they are read in between, and others want their turn too.
constexpr std::chrono::milliseconds kScanSlice(4);
constexpr std::chrono::milliseconds kScanPause(4);
constexpr size_t kMaxHeldFiles = 2048;

size_t HeldFilesBudget(size_t wanted) {
  if (wanted != 0) return wanted;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return kMaxHeldFiles / 4;
  return std::min<size_t>(limit.rlim_cur / 3, kMaxHeldFiles);
}

FileInspections::Options LettingGoOf(absl::Mutex* lock, FileInspections::Options options) {
  options.lock = lock;
  return options;
}

}  // namespace

// `mutex_` guards everything, and nobody holds it while files or processes are waited for. Who
// applies events, or may have to ask, does so in his turn: the tracker's thread for each burst of
// events and each slice of a scan, the drain thread for each part of a window. While answers are
// waited for, no longer than FileInspections does, the turn is kept and `mutex_` is not
// (FileInspections::Options::lock). So without a turn nothing may be done that adds, removes or
// moves a process, a mapping or an object, or uses the directory that is open: only look-ups,
// counters and labels.
class ProcessTracker::State {
 public:
  State(const Options& options, KernelEvents events, UniqueFd stop,
        std::shared_ptr<ObjectInspector> inspector, AddressSpaceSink& sink, TaskSnapshot snapshot)
      : snapshot_(std::move(snapshot)),
        clock_(options.clock),
        sink_(sink),
        observer_(options.observer),
        log_(options.log),
        stop_(std::move(stop)),
        events_(std::move(events)),
        history_({.clock = options.clock,
                  .procfs = options.procfs,
                  .keep = options.keep,
                  .held_files = HeldFilesBudget(options.held_files),
                  .observer = options.observer,
                  .files = options.files,
                  .inspections = LettingGoOf(&mutex_, options.inspections),
                  .reader = options.reader},
                 std::move(inspector), sink) {}

  ~State() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    ::eventfd_write(stop_.get(), 1);
  }

  Result<void> Begin() {
    RETURN_IF_ERROR(BeginScan(ProcessHistory::kFirstScanPatience));
    while (ContinueScan()) Pump();
    Pump();
    while (Show()) {
    }
    resync_ = ResyncSchedule();
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    return {};
  }

  ResolvedWindow Resolve(Window window) {
    const absl::MutexLock showing(&showing_);
    {
      const absl::MutexLock turn(&turn_);
      const absl::MutexLock lock(&mutex_);
      PumpOnce();
    }
    return ResolveShowing(observer_, std::move(window),
                          [this](const auto& action) { return InTurn(action); });
  }

  // Not while one is being seen: that might be as it was before.
  void ShowAgain() {
    const absl::MutexLock showing(&showing_);
    const absl::MutexLock lock(&mutex_);
    history_.ShowAgain();
  }

  // Labels that OnProcess() has returned are those of their process by then.
  void ReplaceLabels(const ProcessKey& process, const LabelSet& of, LabelSet by) {
    const absl::MutexLock showing(&showing_);
    const absl::MutexLock lock(&mutex_);
    history_.ReplaceLabels(process, of, std::move(by));
  }

  void Recheck(const ProcessKey& process) {
    {
      const absl::MutexLock turn(&turn_);
      const absl::MutexLock lock(&mutex_);
      PumpOnce();
      history_.Recheck(process);
    }
    Show();
  }

  std::optional<ProgramMappings> MappingsAt(const ProcessKey& process, ExecId exec,
                                            MonotonicTime when) {
    {
      const absl::MutexLock lock(&mutex_);
      if (applied_ >= when && history_.Knows(process)) {
        return history_.MappingsAt(process, exec, when);
      }
    }
    std::optional<ProgramMappings> mappings;
    {
      const absl::MutexLock turn(&turn_);
      const absl::MutexLock lock(&mutex_);
      if (applied_ < when) PumpOnce();
      mappings = history_.MappingsAt(process, exec, when);
    }
    Show();
    return mappings;
  }

  // For what needs no turn: see above.
  template <typename Action>
  auto WithHistory(Action action) {
    const absl::MutexLock lock(&mutex_);
    return action(history_);
  }

  template <typename Action>
  auto InTurn(Action action) {
    const absl::MutexLock turn(&turn_);
    return WithHistory(std::move(action));
  }

  Result<UniqueFd> OpenObject(ObjectId id) {
    const auto open = [id](ProcessHistory& history) { return history.OpenObject(id); };
    {
      const absl::MutexLock lock(&mutex_);
      if (history_.Holds(id)) return open(history_);
    }
    return InTurn(open);
  }

  ProcessCounters counters() {
    const absl::MutexLock lock(&mutex_);
    ProcessCounters all = history_.counters();
    all.malformed_records = malformed_;
    all.late_records = events_.late();
    all.resyncs = resyncs_;
    all.resyncs_put_off = resyncs_put_off_;
    all.snapshots_failed = snapshots_failed_;
    all.cpu_rescans_failed = cpu_rescans_failed_;
    return all;
  }

 private:
  // Nothing if it failed: then exec ids stay unknown, which costs hot unwinding and no correctness.
  std::optional<std::vector<TaskRecord>> TakeSnapshot() {
    WithHistory([](ProcessHistory& history) { history.ExpectTasks(); });
    Result<std::vector<TaskRecord>> records = snapshot_();
    snapshot_is_due_ = !records;
    if (records) return *std::move(records);
    Tell("reading the exec ids of all tasks", records.error());
    const absl::MutexLock lock(&mutex_);
    ++snapshots_failed_;
    return std::nullopt;
  }

  Result<void> BeginScan(ProcessHistory::ScanPatience patience = std::nullopt) {
    std::vector<TaskRecord> tasks;
    if (snapshot_) tasks = TakeSnapshot().value_or(std::vector<TaskRecord>());
    return BeginScan(tasks, patience);
  }

  Result<void> BeginScan(const std::vector<TaskRecord>& tasks,
                         ProcessHistory::ScanPatience patience = std::nullopt) {
    const absl::MutexLock turn(&turn_);
    const absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(history_.BeginScan(tasks, patience));
    resync_.Begin(clock_.Now());
    return {};
  }

  // The next slice, if all of /proc is being read. True if more is to come.
  bool ContinueScan() {
    if (!resync_.is_under_way()) return false;
    bool more = false;
    {
      const absl::MutexLock turn(&turn_);
      const absl::MutexLock lock(&mutex_);
      more = history_.ContinueScan(kScanSlice);
    }
    if (!more) resync_.End(clock_.Now());
    return more;
  }

  // Without reading all of /proc again as long as that would bring nothing new.
  void RetrySnapshot() {
    const std::optional<std::vector<TaskRecord>> tasks = TakeSnapshot();
    if (tasks) BeginScan(*tasks).has_value();  // see KeepUp()
  }

  // Applies what is there up to a moment after the call began.
  KernelEvents::Batch PumpOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_) {
    KernelEvents::Batch batch = events_.Read();
    malformed_ += batch.malformed;
    history_.Apply(batch.events);
    applied_ = batch.horizon;
    is_publish_due_ = history_.PublishDue();
    return batch;
  }

  // Applies what there is; true if there was anything, or will be to publish. Not for ever: others
  // need the thread too.
  bool Pump() {
    constexpr int kRounds = 8;
    bool any = false;
    bool more = true;
    for (int round = 0; more && round < kRounds; ++round) {
      {
        const absl::MutexLock turn(&turn_);
        const absl::MutexLock lock(&mutex_);
        const KernelEvents::Batch batch = PumpOnce();
        any |= !batch.events.empty() || is_publish_due_ || history_.AwaitsAnswers();
        more = batch.more;
      }
      more |= Show();  // soon: who has just begun may end soon
    }
    return any;
  }

  // Some of those whom the observer has not seen, unless that is done just now; true if there are
  // more.
  bool Show() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    constexpr size_t kSome = 64;  // some milliseconds: rings run full meanwhile
    const auto has_unseen = [](ProcessHistory& history) { return history.has_unseen(); };
    if (observer_ == nullptr || !WithHistory(has_unseen) || !showing_.TryLock()) return false;
    ShowUnseen(*observer_, UINT64_MAX, kSome,
               [this](const auto& action) { return InTurn(action); });
    showing_.Unlock();
    return WithHistory(has_unseen);
  }

  void Run(const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "process-tracker");
    MonotonicTime rescan = After(clock_.Now(), kRescanInterval);
    MonotonicTime happened = clock_.Now();
    while (!stop.stop_requested()) {
      const bool rung = Wait(happened, rescan);
      if (Pump() || rung) happened = clock_.Now();  // what rings may not be in its ring yet
      MakeRoom();
      ContinueScan();
      if (clock_.Now() < rescan) continue;
      KeepUp();
      rescan = After(clock_.Now(), kRescanInterval);
    }
  }

  // Without the lock while it waits, for the kernel's programs: on a large machine that takes long.
  void MakeRoom() {
    if (!sink_.AwaitRoom()) return;
    const absl::MutexLock turn(&turn_);
    const absl::MutexLock lock(&mutex_);
    history_.PublishMissed();
  }

  // When something has just happened, for what else comes with it; later for the next thing that
  // happens, at most until `limit`, since a wakeup costs some 70 us of CPU: true if it has. Without
  // the lock: KernelEvents allows it, and who resolves a window must not wait for it.
  bool Wait(MonotonicTime happened, MonotonicTime limit) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const MonotonicTime now = clock_.Now();
    if (resync_.is_under_way()) {
      events_.Wait(kScanPause);
      return false;
    }
    if (Between(happened, now) < kCalm) {
      events_.Wait(kBusyInterval);
      return false;
    }
    const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(Between(now, limit));
    return events_.WaitForAny(std::max(timeout, kBusyInterval));
  }

  // Follows CPUs that come and go, and looks at /proc again if events were missed.
  void KeepUp() {
    Result<bool> rescanned = false;
    std::vector<ProcessHistory::Notice> notices;
    {
      const absl::MutexLock turn(&turn_);
      const absl::MutexLock lock(&mutex_);
      // A failure leaves the rings as they are; the next second brings the next attempt.
      rescanned = events_.Rescan();
      if (!rescanned) ++cpu_rescans_failed_;
      const bool lost = history_.TakeLost();
      if (rescanned.value_or(false)) history_.NoteMissed();
      const bool missed = lost || rescanned.value_or(false);
      if (missed && resync_.NoteLost(clock_.Now())) ++resyncs_put_off_;
      history_.PublishMissed();
      notices = history_.TakeNotices();
    }
    for (const auto& [what, why] : notices) {
      if (log_ != nullptr) log_->Warn(what, why);
    }
    if (!rescanned) Tell("following the events of CPUs that come and go", rescanned.error());
    if (resync_.IsDue(clock_.Now())) {
      Resync();
    } else if (snapshot_is_due_ && !resync_.is_under_way()) {
      RetrySnapshot();
    }
  }

  void Resync() {
    {
      const absl::MutexLock lock(&mutex_);
      ++resyncs_;
    }
    const Result<void> begun = BeginScan();  // one that fails is due again, as lost_ stays
    if (!begun) Tell("reading /proc again", begun.error());
  }

  // Without the lock: whoever reads the log may take his time.
  void Tell(std::string_view what, const Error& error) {
    if (log_ != nullptr) log_->Failed(what, error);
  }

  const TaskSnapshot snapshot_;
  const Clock& clock_;
  AddressSpaceSink& sink_;
  ProcessObserver* const observer_;  // null: nobody
  Log* const log_;                   // null: nobody wants to know
  const UniqueFd stop_;
  // Who shows processes to the observer, or resolves a window. Taken before the others.
  absl::Mutex showing_ ABSL_ACQUIRED_BEFORE(turn_);
  absl::Mutex turn_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  KernelEvents events_ ABSL_GUARDED_BY(mutex_);
  ProcessHistory history_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime applied_ ABSL_GUARDED_BY(mutex_);  // all events up to then
  bool is_publish_due_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t malformed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t resyncs_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t snapshots_failed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cpu_rescans_failed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t resyncs_put_off_ ABSL_GUARDED_BY(mutex_) = 0;
  // The thread's, once it runs.
  bool snapshot_is_due_ = false;  // the last one failed
  ResyncSchedule resync_;
  std::jthread thread_;
};

ProcessTracker::ProcessTracker(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProcessTracker::~ProcessTracker() = default;

Result<std::unique_ptr<ProcessTracker>> ProcessTracker::Start(
    Options options, std::shared_ptr<ObjectInspector> inspector, AddressSpaceSink& sink,
    TaskSnapshot snapshot) {
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) return SystemError(errno, "eventfd");
  ASSIGN_OR_RETURN(KernelEvents events,
                   KernelEvents::Open({.clock = options.clock,
                                       .procfs = options.procfs,
                                       .ring = {options.ring_bytes, kWakeupBytes},
                                       .wake_fd = stop.get()}));
  auto state = std::make_unique<State>(options, std::move(events), std::move(stop),
                                       std::move(inspector), sink, std::move(snapshot));
  RETURN_IF_ERROR(state->Begin());
  return std::unique_ptr<ProcessTracker>(new ProcessTracker(std::move(state)));
}

ResolvedWindow ProcessTracker::Resolve(Window window) {
  return state_->Resolve(std::move(window));
}

void ProcessTracker::Recheck(const ProcessKey& process) {
  state_->Recheck(process);
}

std::optional<ProgramMappings> ProcessTracker::MappingsAt(const ProcessKey& process, ExecId exec,
                                                          MonotonicTime when) {
  return state_->MappingsAt(process, exec, when);
}

std::optional<ObjectInfo> ProcessTracker::Object(ObjectId id) const {
  return state_->WithHistory([&](ProcessHistory& history) { return history.Object(id); });
}

Result<UniqueFd> ProcessTracker::OpenObject(ObjectId id) {
  return state_->OpenObject(id);
}

std::vector<SampledObject> ProcessTracker::TakeSampled() {
  return state_->WithHistory([](ProcessHistory& history) { return history.TakeSampled(); });
}

Result<UniqueFd> ProcessTracker::OpenRootOf(ObjectId id) {
  return state_->InTurn([&](ProcessHistory& history) { return history.OpenRootOf(id); });
}

void ProcessTracker::ReplaceLabels(const ProcessKey& process, const LabelSet& of, LabelSet by) {
  state_->ReplaceLabels(process, of, std::move(by));
}

void ProcessTracker::ShowAgain() {
  state_->ShowAgain();
}

ProcessCounters ProcessTracker::counters() const {
  return state_->counters();
}

}  // namespace pyrometer
