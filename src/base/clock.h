// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <ctime>

#include "pyrometer/ids.h"

namespace pyrometer {

// CLOCK_MONOTONIC now: the clock of BPF samples and our perf events.
inline MonotonicTime MonotonicNow() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return MonotonicTime(static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
                       static_cast<uint64_t>(t.tv_nsec));
}

inline MonotonicTime After(MonotonicTime when, std::chrono::nanoseconds time) {
  return MonotonicTime(when.value() + static_cast<uint64_t>(time.count()));
}

inline MonotonicTime Before(MonotonicTime when, std::chrono::nanoseconds time) {
  const auto ns = static_cast<uint64_t>(time.count());
  return MonotonicTime(when.value() > ns ? when.value() - ns : 0);
}

// The time from `from` to `to`; negative if `to` is earlier.
inline std::chrono::nanoseconds Between(MonotonicTime from, MonotonicTime to) {
  return std::chrono::nanoseconds(static_cast<int64_t>(to.value() - from.value()));
}

// The current time; tests derive clocks of their own. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const { return MonotonicNow(); }
  virtual std::chrono::system_clock::time_point WallNow() const {
    return std::chrono::system_clock::now();
  }
};

// What the wall clock, as it is set now, showed at `when`; some us more, or as much as this thread
// is preempted meanwhile each time that it tries.
std::chrono::system_clock::time_point WallTimeOf(MonotonicTime when, const Clock& clock);

}  // namespace pyrometer
