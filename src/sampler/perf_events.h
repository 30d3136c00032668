// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/cpu_list.h"
#include "base/event_reading.h"
#include "base/procfs.h"
#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

struct bpf_link;
struct bpf_program;

namespace pyrometer {

// One PERF_COUNT_SW_CPU_CLOCK event with a fixed period per online CPU, each with the sampling
// program attached. Follows CPUs that come and go.
class PerfEvents {
 public:
  PerfEvents(bpf_program* program, Hertz frequency, Procfs procfs);
  ~PerfEvents();
  PerfEvents(const PerfEvents&) = delete;
  PerfEvents& operator=(const PerfEvents&) = delete;

  // Opens what is missing and lets go of what went offline. The first call starts the sampling;
  // it fails if no CPU can be sampled.
  Result<void> FollowCpus();

  // After this no tick happens.
  void Stop();

  // On all CPUs together, at most.
  uint64_t TicksPerSecond() const;

  // Periods that have passed on all CPUs together since each was opened: ticks that were due.
  uint64_t DueTicks() const;

 private:
  struct LinkDeleter {
    void operator()(bpf_link* link) const;
  };
  struct CpuEvent {
    std::unique_ptr<bpf_link, LinkDeleter> link;  // owns the perf event's descriptor
    int fd = -1;
    StoppedEvent stopped;
  };

  Result<CpuEvent> Open(uint32_t cpu) const;
  uint64_t DueOn(const CpuEvent& event) const;
  void Close(CpuEvent& event);

  bpf_program* program_;
  uint64_t period_ns_;
  Procfs procfs_;
  std::map<uint32_t, CpuEvent> events_;
  uint64_t due_on_closed_ = 0;
};

}  // namespace pyrometer
