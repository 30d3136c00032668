// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "profiler/window_consumer.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Identifies an attached consumer; never reused.
using ConsumerId = uint32_t;

// A moment by both clocks.
struct Moment {
  MonotonicTime monotonic;
  std::chrono::system_clock::time_point wall;
};

// When windows end: with the period of any consumer, and after `longest` at the latest.
// Thread-compatible.
class Schedule {
 public:
  explicit Schedule(std::chrono::nanoseconds longest) : longest_(longest) {}

  // REQUIRES: period.length > 0. The first period begins now. An aligned one may be shorter than
  // the others, or longer by up to a tenth.
  void Add(ConsumerId consumer, const WindowPeriod& period, const Moment& now);
  // All periods begin anew.
  void Restart(const Moment& now);
  void Remove(ConsumerId consumer) { periods_.erase(consumer); }

  // When a window that began at `begin` is to end.
  MonotonicTime EndOfWindow(MonotonicTime begin) const;

  // The consumers whose periods end with a window that ends now. Begins their next periods.
  std::vector<ConsumerId> EndPeriods(const Moment& now);

  // All consumers: at the end, every period ends.
  std::vector<ConsumerId> EndAll() const;

 private:
  struct Running {
    WindowPeriod period;
    MonotonicTime end;
  };

  static MonotonicTime NextEnd(const WindowPeriod& period, const Moment& now);

  std::chrono::nanoseconds longest_;
  std::map<ConsumerId, Running> periods_;
};

}  // namespace pyrometer
