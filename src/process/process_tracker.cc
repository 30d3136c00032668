// SPDX-License-Identifier: Apache-2.0
#include "process/process_tracker.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/system_error.h"
#include "process/kernel_events.h"
#include "process/process_history.h"

namespace pyrometer {
namespace {

constexpr uint32_t kWakeupBytes = 1;
constexpr int kPollMilliseconds = 1000;
constexpr auto kRescanInterval = std::chrono::seconds(1);
constexpr size_t kMaxHeldFiles = 2048;

size_t HeldFilesBudget(size_t wanted) {
  if (wanted != 0) return wanted;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return kMaxHeldFiles / 4;
  return std::min<size_t>(limit.rlim_cur / 2, kMaxHeldFiles);
}

}  // namespace

// One mutex guards everything. The tracker's thread takes it for each burst of events and each
// scan; the drain thread for a window; whoever opens files for as long as that takes.
class ProcessTracker::State {
 public:
  State(Options options, KernelEvents events, UniqueFd stop, ObjectInspector& inspector,
        AddressSpaceSink& sink, TaskSnapshot snapshot)
      : snapshot_(std::move(snapshot)),
        stop_(std::move(stop)),
        poll_fd_(events.poll_fd()),
        events_(std::move(events)),
        history_({options.procfs, options.keep, HeldFilesBudget(options.held_files)}, inspector,
                 sink) {}

  ~State() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    ::eventfd_write(stop_.get(), 1);
  }

  Result<void> Begin() {
    RETURN_IF_ERROR(ScanAll());
    Pump();
    thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
    return {};
  }

  Window Resolve(Window window) {
    const absl::MutexLock lock(&mutex_);
    PumpOnce();
    return history_.Resolve(std::move(window));
  }

  template <typename Action>
  auto WithHistory(Action action) {
    const absl::MutexLock lock(&mutex_);
    return action(history_);
  }

  ProcessCounters counters() {
    const absl::MutexLock lock(&mutex_);
    ProcessCounters all = history_.counters();
    all.malformed_records = malformed_;
    all.late_records = events_.late();
    all.resyncs = resyncs_;
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> ScanAll() {
    std::vector<TaskRecord> tasks;
    if (snapshot_) {
      // Without it exec ids stay unknown, which costs hot unwinding and no correctness.
      if (Result<std::vector<TaskRecord>> records = snapshot_()) tasks = *std::move(records);
    }
    const absl::MutexLock lock(&mutex_);
    return history_.Scan(tasks);
  }

  // Applies what is there up to a moment after the call began; true if there is more.
  bool PumpOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const KernelEvents::Batch batch = events_.Read();
    malformed_ += batch.malformed;
    history_.Apply(batch.events);
    return batch.more;
  }

  void Pump() {
    bool more = true;
    while (more) {
      const absl::MutexLock lock(&mutex_);
      more = PumpOnce();
    }
  }

  void Run(std::stop_token stop) {
    Clock::time_point rescan = Clock::now() + kRescanInterval;
    while (!stop.stop_requested()) {
      WaitForEvents();
      Pump();
      if (Clock::now() < rescan) continue;
      KeepUp();
      rescan = Clock::now() + kRescanInterval;
    }
  }

  void WaitForEvents() {
    std::array<pollfd, 2> fds{{{poll_fd_, POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), kPollMilliseconds);
    const absl::MutexLock lock(&mutex_);
    if (fds[0].revents != 0) events_.ClearReadiness();
  }

  // Follows CPUs that come and go, and looks at /proc again if events were missed.
  void KeepUp() {
    bool missed = false;
    {
      const absl::MutexLock lock(&mutex_);
      // A failure leaves the rings as they are; the next second brings the next attempt.
      missed = events_.Rescan().value_or(false);
      missed |= history_.TakeLost();
      if (missed) ++resyncs_;
    }
    if (missed) ScanAll().has_value();
  }

  const TaskSnapshot snapshot_;
  const UniqueFd stop_;
  const int poll_fd_;
  absl::Mutex mutex_;
  KernelEvents events_ ABSL_GUARDED_BY(mutex_);
  ProcessHistory history_ ABSL_GUARDED_BY(mutex_);
  uint64_t malformed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t resyncs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::jthread thread_;
};

ProcessTracker::ProcessTracker(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProcessTracker::~ProcessTracker() = default;

Result<std::unique_ptr<ProcessTracker>> ProcessTracker::Start(Options options,
                                                              ObjectInspector& inspector,
                                                              AddressSpaceSink& sink,
                                                              TaskSnapshot snapshot) {
  ASSIGN_OR_RETURN(KernelEvents events,
                   KernelEvents::Open({options.procfs, {options.ring_bytes, kWakeupBytes}}));
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) return SystemError(errno, "eventfd");
  auto state = std::make_unique<State>(std::move(options), std::move(events), std::move(stop),
                                       inspector, sink, std::move(snapshot));
  RETURN_IF_ERROR(state->Begin());
  return std::unique_ptr<ProcessTracker>(new ProcessTracker(std::move(state)));
}

Window ProcessTracker::Resolve(Window window) {
  return state_->Resolve(std::move(window));
}

std::optional<ObjectInfo> ProcessTracker::Object(ObjectId id) const {
  return state_->WithHistory([&](ProcessHistory& history) { return history.Object(id); });
}

Result<UniqueFd> ProcessTracker::OpenObject(ObjectId id) {
  return state_->WithHistory([&](ProcessHistory& history) { return history.OpenObject(id); });
}

Result<UniqueFd> ProcessTracker::OpenPerfMap(const ProcessKey& process) {
  return state_->WithHistory([&](ProcessHistory& history) { return history.OpenPerfMap(process); });
}

std::vector<KernelSymbolEvent> ProcessTracker::TakeKernelSymbolEvents() {
  return state_->WithHistory(
      [](ProcessHistory& history) { return history.TakeKernelSymbolEvents(); });
}

ProcessCounters ProcessTracker::counters() const {
  return state_->counters();
}

size_t ProcessTracker::process_count() const {
  return state_->WithHistory([](ProcessHistory& history) { return history.process_count(); });
}

}  // namespace pyrometer
