// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "pyrometer/ids.h"

namespace pyrometer {

// Turns times of events into start times of processes: CLOCK_BOOTTIME is CLOCK_MONOTONIC plus the
// time the machine was suspended.
class BootClock {
 public:
  BootClock() = default;
  explicit BootClock(uint64_t suspended_ns) : suspended_ns_(suspended_ns) {}
  // With the machine's suspended time up to now.
  static BootClock Now();

  // The start time of a process whose fork was reported at `when`, or one tick later, since the
  // kernel takes the start time some 20 us before it reports the fork.
  StartTime ToStartTime(MonotonicTime when) const;

 private:
  uint64_t suspended_ns_ = 0;
};

// What the wall clock, as it is set now, showed at `start`; or somewhat less, if this thread is
// preempted meanwhile.
std::chrono::system_clock::time_point WallTimeOf(StartTime start);

}  // namespace pyrometer
