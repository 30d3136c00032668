// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/container/btree_map.h"

namespace pyrometer {

// What lies at which addresses, where the last that came counts: a range that is put takes away
// from older ones what it covers. Ranges do not overlap, and each step costs O(log n). Not
// thread-safe.
template <typename T>
class LatestRanges {
 public:
  // Takes a part of a range that is no longer there.
  static constexpr auto kIgnore = [](uint64_t /*start*/, uint64_t /*end*/, const T& /*old*/) {};

  // `value` lies in [start, end) now. REQUIRES: start < end.
  template <typename OnReplaced = decltype(kIgnore)>
  void Put(uint64_t start, uint64_t end, T value, OnReplaced on_replaced = kIgnore) {
    Clear(start, end, on_replaced);
    ranges_[start] = {.end = end, .value = std::move(value)};
  }

  // Nothing lies in [start, end) now. REQUIRES: start < end.
  template <typename OnReplaced = decltype(kIgnore)>
  void Clear(uint64_t start, uint64_t end, OnReplaced on_replaced = kIgnore) {
    auto next = ranges_.lower_bound(start);
    if (next != ranges_.begin() && std::prev(next)->second.end > start) {
      const auto before = std::prev(next);
      const Range old = before->second;
      before->second.end = start;
      on_replaced(start, old.end < end ? old.end : end, old.value);
      if (old.end > end) {
        ranges_[end] = old;
        return;  // nothing else lies in it
      }
    }
    next = ranges_.lower_bound(start);
    while (next != ranges_.end() && next->first < end) {
      const uint64_t from = next->first;
      const Range old = std::move(next->second);
      next = ranges_.erase(next);
      on_replaced(from, old.end < end ? old.end : end, old.value);
      if (old.end <= end) continue;
      ranges_[end] = old;
      return;  // nothing lies between it and the next
    }
  }

  // What lies at `address`; null: nothing. Valid until the next change.
  const T* Find(uint64_t address) const {
    const auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) return nullptr;
    const Range& range = std::prev(next)->second;
    return address < range.end ? &range.value : nullptr;
  }

  // Calls `change` with what lies somewhere, in the order of addresses.
  template <typename Change>
  void ForEach(Change change) {
    for (auto& [start, range] : ranges_) change(range.value);
  }

  bool empty() const { return ranges_.empty(); }
  size_t size() const { return ranges_.size(); }

  // Approximate memory use, in bytes, without what values own.
  size_t bytes() const { return ranges_.size() * sizeof(typename decltype(ranges_)::value_type); }

 private:
  struct Range {
    uint64_t end = 0;
    T value{};
  };

  absl::btree_map<uint64_t, Range> ranges_;  // by start
};

}  // namespace pyrometer
