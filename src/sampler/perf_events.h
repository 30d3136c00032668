// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/cpu_list.h"
#include "base/event_reading.h"
#include "base/procfs.h"
#include "base/unique_fd.h"
#include "pyrometer/event.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

struct bpf_link;
struct bpf_program;

namespace pyrometer {

// One perf event of a kind with a fixed period per online CPU, each with the sampling program
// attached. Follows CPUs that come and go. Any thread.
class PerfEvents {
 public:
  struct Options {
    SampledEvent event{};
    Hertz frequency{99};  // of a clock
    Procfs procfs{};
  };
  PerfEvents(bpf_program* program, const Options& options);
  ~PerfEvents();
  PerfEvents(const PerfEvents&) = delete;
  PerfEvents& operator=(const PerfEvents&) = delete;

  // Opens events on CPUs that came online and closes those of CPUs that went offline. The first
  // call starts sampling. A CPU that cannot be sampled is counted and tried again at the next call;
  // the call fails only if no CPU can be sampled.
  Result<void> FollowCpus();

  // No tick happens after this.
  void Stop();

  // No tick happens between Pause and Resume, and that time does not count as due.
  void Pause();
  // `frequency` is a clock's; a counted event has none, and goes on as before.
  void Resume(Hertz frequency);

  const SampledEvent& event() const { return event_; }
  Hertz frequency() const;  // of a counted event 0

  // At most, on all CPUs together; the greatest number for a counted event, which has no limit.
  uint64_t TicksPerSecond() const;

  // Ticks of a clock that were due: the periods, each of the length in force at the time, that have
  // passed on all CPUs together while their events were open. 0 for a counted event: it is due when
  // it happens.
  uint64_t DueTicks() const;

  // CPUs being sampled.
  size_t size() const;
  // How often a CPU could not be sampled, or no longer.
  uint64_t failures() const;

 private:
  struct LinkDeleter {
    void operator()(bpf_link* link) const;
  };
  struct CpuEvent {
    std::unique_ptr<bpf_link, LinkDeleter> link;  // owns the perf event's descriptor
    int fd = -1;
    StoppedEvent stopped;
    // At the last change of the period: the ticks due until then, and the event's count.
    uint64_t due_before = 0;
    uint64_t counted_before = 0;
  };

  Result<CpuEvent> Open(uint32_t cpu) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetGo(const std::vector<uint32_t>& online) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t DueOn(const CpuEvent& event, uint64_t counted) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ChangePeriod(CpuEvent& event, uint64_t period) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(CpuEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bpf_program* const program_;
  const SampledEvent event_;
  const Procfs procfs_;
  mutable absl::Mutex mutex_;
  Hertz frequency_ ABSL_GUARDED_BY(mutex_);
  uint64_t period_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, CpuEvent> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t due_on_closed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pyrometer
