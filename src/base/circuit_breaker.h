// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Keeps work away from something that does not answer, and finds out when it does again: after a
// failure there is a pause, then one attempt, and a pause of twice the length if that fails as
// well. Thread-compatible.
class CircuitBreaker {
 public:
  struct Pauses {
    std::chrono::nanoseconds first = std::chrono::seconds(1);
    std::chrono::nanoseconds longest = std::chrono::seconds(60);
  };

  // True if an attempt may be made at `now`; one of the next three is to be called for each.
  bool Admit(MonotonicTime now) {
    if (!is_open_) return true;
    if (is_probing_ || now < next_attempt_) return false;
    is_probing_ = true;
    return true;
  }

  // True if there was a failure and the next attempt may be made.
  bool IsDue(MonotonicTime now) const { return is_open_ && !is_probing_ && now >= next_attempt_; }

  void Succeeded() { *this = {}; }

  void Failed(const Pauses& pauses, MonotonicTime now) {
    if (!is_open_) {
      pause_ = pauses.first;
    } else if (is_probing_) {
      pause_ = std::min(2 * pause_, pauses.longest);
    } else {
      return;  // began together with the first that failed
    }
    is_open_ = true;
    is_probing_ = false;
    next_attempt_ = After(now, pause_);
  }

  // The attempt was not made after all.
  void Withdrawn() { is_probing_ = false; }

  // True from a failure until the next success.
  bool is_open() const { return is_open_; }

 private:
  bool is_open_ = false;
  bool is_probing_ = false;
  std::chrono::nanoseconds pause_{};  // the last one
  MonotonicTime next_attempt_;
};

}  // namespace pyrometer
