// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// When to read all of /proc again, because records were lost: the first time at once. As long as
// more are lost each time, later and later, so that it takes a fifth of the time at most, for who
// makes us lose records must not make us do nothing else. What is lost meanwhile starts nothing
// anew: each resync comes to its end. Thread-compatible.
class ResyncSchedule {
 public:
  // Something was lost: a resync that has begun already may have missed it. True if the next one is
  // put off.
  bool NoteLost(MonotonicTime now) {
    if (std::exchange(lost_, true)) return false;
    return is_under_way_ || now < not_before_;
  }

  // True if one should begin.
  bool IsDue(MonotonicTime now) const { return lost_ && !is_under_way_ && now >= not_before_; }
  bool is_under_way() const { return is_under_way_; }

  void Begin(MonotonicTime now) {
    const bool was_calm = now >= After(not_before_, pause_);
    if (was_calm) pause_ = std::chrono::nanoseconds(0);
    lost_ = false;
    is_under_way_ = true;
    begun_ = now;
  }
  void End(MonotonicTime now) {
    is_under_way_ = false;
    const std::chrono::nanoseconds took = Between(begun_, now);
    pause_ = std::max(std::clamp(2 * pause_, kLeast, kMost), 4 * took);
    not_before_ = After(now, pause_);
  }

 private:
  static constexpr std::chrono::nanoseconds kLeast = std::chrono::seconds(1);
  static constexpr std::chrono::nanoseconds kMost = std::chrono::minutes(1);

  bool lost_ = false;
  bool is_under_way_ = false;
  MonotonicTime begun_;
  MonotonicTime not_before_;
  std::chrono::nanoseconds pause_{};
};

}  // namespace pyrometer
