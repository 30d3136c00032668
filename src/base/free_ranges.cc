// SPDX-License-Identifier: Apache-2.0
#include "base/free_ranges.h"

#include <iterator>

namespace pyrometer {

std::optional<uint32_t> FreeRanges::Take(uint32_t count) {
  for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
    const auto [first, size] = *it;
    if (size < count) continue;
    ranges_.erase(it);
    if (size > count) ranges_.emplace(first + count, size - count);
    return first;
  }
  return std::nullopt;
}

void FreeRanges::GiveBack(uint32_t first, uint32_t count) {
  auto next = ranges_.lower_bound(first);
  if (next != ranges_.end() && next->first == first + count) {
    count += next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == first) {
      previous->second += count;
      return;
    }
  }
  ranges_.emplace(first, count);
}

}  // namespace pyrometer
