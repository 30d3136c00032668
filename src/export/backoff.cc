// SPDX-License-Identifier: Apache-2.0
#include "export/backoff.h"

#include <algorithm>

#include "base/clock.h"

namespace pyrometer {

Backoff::Backoff(const RetryPolicy& policy, uint32_t most, uint64_t seed)
    : policy_(policy), most_(most), random_(seed) {}

void Backoff::Answered(uint64_t period) {
  if (period != period_) return;
  failing_since_.reset();
  longest_ = {};
  allowed_ = std::min(most_, allowed_ + 1);
}

void Backoff::Failed(uint64_t period, MonotonicTime now,
                     std::optional<std::chrono::nanoseconds> retry_after) {
  const std::chrono::nanoseconds most = std::max(policy_.min_backoff, policy_.max_backoff);
  if (period == period_) {
    ++period_;
    allowed_ = 1;
    if (!failing_since_) failing_since_ = now;
    longest_ = std::min(most, std::max(2 * longest_, 2 * policy_.min_backoff));
    next_ = After(now, Draw(policy_.min_backoff, longest_));
  }
  if (!retry_after || *retry_after <= std::chrono::nanoseconds(0)) return;
  // A little more for some, so that those who were refused together do not come back together.
  const std::chrono::nanoseconds asked = std::min(*retry_after, most);
  next_ = std::max(next_, After(now, asked + Draw({}, asked / 10)));
}

std::chrono::nanoseconds Backoff::Draw(std::chrono::nanoseconds from, std::chrono::nanoseconds to) {
  std::uniform_int_distribution<int64_t> distribution(from.count(), std::max(from, to).count());
  return std::chrono::nanoseconds(distribution(random_));
}

}  // namespace pyrometer
