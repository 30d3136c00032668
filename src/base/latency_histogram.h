// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pyrometer {

// How long something took, however often: quantiles to within an eighth and the exact maximum, in
// 2 KB for ever. In whole microseconds, rounded up; 71 minutes count as any longer time.
// Thread-compatible.
class LatencyHistogram {
 public:
  // A negative time, as two clocks can make of a short one, counts as none.
  void Add(std::chrono::nanoseconds took);

  // What `share` of all times did not exceed; 0 if there were none. REQUIRES: 0 < `share` <= 1.
  std::chrono::microseconds Quantile(double share) const;
  // How many times there were, how many of them were no longer than `limit`, to within an eighth of
  // it (exact for 2^n - 1 us), and their sum.
  uint64_t count() const { return count_; }
  uint64_t CountUpTo(std::chrono::microseconds limit) const;
  std::chrono::microseconds sum() const { return std::chrono::microseconds(sum_); }

  std::chrono::microseconds longest() const { return std::chrono::microseconds(longest_); }

 private:
  // The first eight for 0 to 7 us, then eight for each power of two.
  static constexpr size_t kBuckets = 240;

  static size_t BucketOf(uint32_t us);
  static uint64_t LastOf(size_t bucket);

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;  // us
  uint32_t longest_ = 0;
};

}  // namespace pyrometer
