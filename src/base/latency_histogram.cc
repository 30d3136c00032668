// SPDX-License-Identifier: Apache-2.0
#include "base/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace pyrometer {
namespace {

constexpr uint32_t kParts = 8;  // of a power of two
constexpr uint32_t kPartBits = 3;

}  // namespace

size_t LatencyHistogram::BucketOf(uint32_t us) {
  if (us < kParts) return us;
  const auto octave = static_cast<uint32_t>(std::bit_width(us)) - 1;
  const uint32_t part = (us >> (octave - kPartBits)) % kParts;
  return size_t{octave - kPartBits + 1} * kParts + part;
}

uint64_t LatencyHistogram::LastOf(size_t bucket) {
  if (bucket < kParts) return bucket;
  const uint64_t octave = bucket / kParts + kPartBits - 1;
  const uint64_t part = bucket % kParts;
  return ((kParts + part + 1) << (octave - kPartBits)) - 1;
}

void LatencyHistogram::Add(std::chrono::nanoseconds took) {
  constexpr int64_t kLongest = std::numeric_limits<uint32_t>::max();
  const int64_t rounded = std::chrono::ceil<std::chrono::microseconds>(took).count();
  const auto us = static_cast<uint32_t>(std::clamp<int64_t>(rounded, 0, kLongest));
  ++counts_[BucketOf(us)];
  ++count_;
  sum_ += us;
  longest_ = std::max(longest_, us);
}

uint64_t LatencyHistogram::CountUpTo(std::chrono::microseconds limit) const {
  uint64_t count = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (LastOf(bucket) > static_cast<uint64_t>(std::max<int64_t>(limit.count(), 0))) break;
    count += counts_[bucket];
  }
  return count;
}

std::chrono::microseconds LatencyHistogram::Quantile(double share) const {
  if (count_ == 0) return {};
  const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  size_t bucket = 0;
  while (bucket + 1 < kBuckets && (seen += counts_[bucket]) < rank) ++bucket;
  return std::chrono::microseconds(std::min<uint64_t>(LastOf(bucket), longest_));
}

}  // namespace pyrometer
