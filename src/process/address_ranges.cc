// SPDX-License-Identifier: Apache-2.0
#include "process/address_ranges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace pyrometer {
namespace {

// 16 KiB for a program that changes its code all over; most have none.
constexpr size_t kMaxRanges = 1024;

}  // namespace

void AddressRanges::Add(Address start, Address end) {
  if (end <= start) return;
  auto it = ranges_.upper_bound(start);
  if (it != ranges_.begin() && std::prev(it)->second >= start) --it;
  while (it != ranges_.end() && it->first <= end) {
    start = std::min(start, it->first);
    end = std::max(end, it->second);
    it = ranges_.erase(it);
  }
  ranges_.emplace(start, end);
  if (ranges_.size() > kMaxRanges) MergeNearest();
}

void AddressRanges::MergeNearest() {
  auto nearest = ranges_.begin();
  uint64_t smallest = UINT64_MAX;
  for (auto it = ranges_.begin(); std::next(it) != ranges_.end(); ++it) {
    const uint64_t gap = std::next(it)->first.value() - it->second.value();
    if (gap >= smallest) continue;
    smallest = gap;
    nearest = it;
  }
  const auto next = std::next(nearest);
  nearest->second = next->second;
  ranges_.erase(next);
}

bool AddressRanges::Contains(Address address) const {
  const auto next = ranges_.upper_bound(address);
  return next != ranges_.begin() && address < std::prev(next)->second;
}

Address AddressRanges::EndOfStretch(Address address, Address limit) const {
  const auto next = ranges_.upper_bound(address);
  if (next != ranges_.begin() && address < std::prev(next)->second) {
    return std::min(std::prev(next)->second, limit);
  }
  return next == ranges_.end() ? limit : std::min(next->first, limit);
}

}  // namespace pyrometer
