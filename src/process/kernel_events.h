// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/unique_fd.h"
#include "process/event_merger.h"
#include "process/perf_ring.h"
#include "process/process_event.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What happens to processes on all CPUs, in order of time. Thread-compatible.
class KernelEvents {
 public:
  struct Options {
    const Clock& clock;  // CLOCK_MONOTONIC, as the records'; must outlive the events
    Procfs procfs;
    PerfRing::Options ring;
    int wake_fd = -1;  // Wait() returns when it is readable; must outlive the events
  };
  struct Batch {
    std::vector<ProcessEvent> events;
    uint64_t malformed = 0;
    MonotonicTime horizon;  // all events up to then are in this batch or an earlier one
    // True: later events wait in the rings or were read too early to be ordered; read again.
    bool more = false;
  };

  // Errors: kPermission, kUnsupported if no CPU delivers events.
  static Result<KernelEvents> Open(Options options);

  // Every event up to a moment after the call began. Never waits.
  Batch Read();

  // Opens the streams of CPUs that came online and closes those of CPUs that went offline, even if
  // they are back. True if a CPU came: what happened on it before is unknown.
  Result<bool> Rescan();

  // Returns when a ring has enough unread bytes, options.wake_fd is readable, or after `timeout`.
  // Call it, like WaitForAny(), on the thread that calls Rescan(); another thread may be in Read().
  void Wait(std::chrono::milliseconds timeout) const;

  // Returns true at once if any record is unread, or when one is being written or options.wake_fd
  // is readable; false after `timeout`, or 20 ms where the kernel has no memory for the bells.
  bool WaitForAny(std::chrono::milliseconds timeout);

  uint64_t late() const { return merger_.late(); }

 private:
  // A CPU's records, and a second stream of the same (the bell) whose ring holds next to nothing.
  // The bell is not read; once full it costs nothing, and once emptied it reports the next record.
  // (50 wakeups a second cost 0.3 % of a core on a virtual machine.)
  struct Cpu {
    PerfRing ring;
    std::optional<PerfRing> bell;
  };

  KernelEvents(Options options, UniqueFd epoll, UniqueFd any);
  Result<void> AddCpu(unsigned cpu);
  bool HasUnread() const;

  Options options_;
  // Both edge-triggered: what is readable is reported once.
  UniqueFd epoll_;  // rings and wake_fd
  UniqueFd any_;    // bells and wake_fd
  std::vector<Cpu> cpus_;
  EventMerger merger_;
  uint64_t malformed_ = 0;  // since the last batch
};

}  // namespace pyrometer
