// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace pyrometer {

// What read(2) returns for a perf event with PERF_FORMAT_TOTAL_TIME_ENABLED.
struct EventReading {
  uint64_t value = 0;
  uint64_t enabled_ns = 0;  // how long it could count

  // All 0 if it cannot be read.
  static EventReading Of(int fd) {
    EventReading reading;
    if (::read(fd, &reading, sizeof(reading)) != sizeof(reading)) return {};
    return reading;
  }
};

// Tells when the event of one CPU has stopped for good: a CPU that goes offline disables its
// events, and they stay disabled when it comes back, also after a suspend (kernel/events/core.c,
// perf_event_exit_cpu).
class StoppedEvent {
 public:
  // True if `fd` has not been enabled since the last call, or cannot be read.
  bool HasStopped(int fd) {
    const uint64_t enabled_ns = EventReading::Of(fd).enabled_ns;
    return std::exchange(enabled_ns_, enabled_ns) == enabled_ns;
  }

 private:
  uint64_t enabled_ns_ = 0;
};

}  // namespace pyrometer
