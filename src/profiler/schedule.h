// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "profiler/window_consumer.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Which consumer, or which one's period; never used again.
using ConsumerId = uint32_t;

// The moment something happens, by both clocks.
struct Moment {
  MonotonicTime monotonic;
  std::chrono::system_clock::time_point wall;
};

// When windows end: wherever a period of a consumer does, and after `longest` at the latest.
// Thread-compatible.
class Schedule {
 public:
  explicit Schedule(std::chrono::nanoseconds longest) : longest_(longest) {}

  // REQUIRES: period.length > 0. Its first period begins now; an aligned one may be shorter or, by
  // a tenth, longer.
  void Add(ConsumerId consumer, const WindowPeriod& period, const Moment& now);
  // All periods begin anew.
  void Restart(const Moment& now);
  void Remove(ConsumerId consumer) { periods_.erase(consumer); }

  // When a window that began at `begin` is to end.
  MonotonicTime EndOfWindow(MonotonicTime begin) const;

  // Whose periods end with a window that ends now. They begin anew.
  std::vector<ConsumerId> EndPeriods(const Moment& now);

  // All of them, as when everything ends.
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
