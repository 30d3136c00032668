// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "pyrometer/ids.h"

namespace pyrometer {

// Allows a burst, and after that one more in each interval. Thread-compatible.
class TokenBucket {
 public:
  TokenBucket(uint32_t burst, std::chrono::nanoseconds interval)
      : burst_(burst), interval_ns_(static_cast<uint64_t>(interval.count())), tokens_(burst) {}

  // Takes a token if there is one at `now`; true if so. REQUIRES: `now` not before an earlier
  // call's.
  bool Take(MonotonicTime now) {
    if (tokens_ == burst_) filled_at_ = now;  // time with a full bucket does not count
    const uint64_t due = (now.value() - filled_at_.value()) / interval_ns_;
    filled_at_ = MonotonicTime(filled_at_.value() + due * interval_ns_);
    tokens_ = std::min(burst_, tokens_ + static_cast<int64_t>(due));
    if (tokens_ <= 0) return false;
    --tokens_;
    return true;
  }

  // What was taken turned out to cost so many more, if need be of those to come.
  void Charge(uint32_t more) { tokens_ -= more; }

 private:
  int64_t burst_;
  uint64_t interval_ns_;
  int64_t tokens_;           // below 0: taken in advance
  MonotonicTime filled_at_;  // when the last token came
};

}  // namespace pyrometer
