// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

#include "pyrometer/ids.h"

namespace pyrometer {

// When to ask a destination again that did not take what it was given.
struct RetryPolicy {
  std::chrono::nanoseconds min_backoff{std::chrono::milliseconds(500)};
  // Also the longest that a destination can ask for: one that says an hour is asked earlier, which
  // costs it one request, and cannot stop the queue for ever.
  std::chrono::nanoseconds max_backoff{std::chrono::minutes(5)};
  // Sends again what may have arrived. Off: it is dropped, since no destination notices doubles.
  bool at_least_once = false;
};

// How many requests one destination may have under way, and when. After a failure there is a pause,
// drawn from [min, 2 * the longest of the last draw] up to the maximum; then a single request finds
// out whether it works again. Each answer allows one request more, up to `most`, so that neither a
// destination that comes back nor one that limits its rate is met with all of them at once.
// Thread-compatible.
class Backoff {
 public:
  // REQUIRES: most > 0.
  Backoff(const RetryPolicy& policy, uint32_t most, uint64_t seed);

  // May one more request begin at `now`, beside those `under_way`?
  bool Admits(MonotonicTime now, uint32_t under_way) const {
    return under_way < allowed_ && (!is_failing() || now >= next_);
  }
  uint32_t allowed() const { return allowed_; }  // requests under way
  // To be kept with a request that begins, and given back with its outcome.
  uint64_t period() const { return period_; }

  void Answered(uint64_t period);
  // `retry_after` is what the destination asked for.
  void Failed(uint64_t period, MonotonicTime now,
              std::optional<std::chrono::nanoseconds> retry_after);

  bool is_failing() const { return failing_since_.has_value(); }
  std::optional<MonotonicTime> failing_since() const { return failing_since_; }
  // When a request may begin. REQUIRES: is_failing().
  MonotonicTime next() const { return next_; }

 private:
  std::chrono::nanoseconds Draw(std::chrono::nanoseconds from, std::chrono::nanoseconds to);

  const RetryPolicy policy_;
  const uint32_t most_;
  std::mt19937_64 random_;
  uint32_t allowed_ = 1;
  // Grows with each failure that counts: requests that began before it say nothing new.
  uint64_t period_ = 0;
  std::optional<MonotonicTime> failing_since_;
  std::chrono::nanoseconds longest_{};  // that the last draw could have been
  MonotonicTime next_;
};

}  // namespace pyrometer
