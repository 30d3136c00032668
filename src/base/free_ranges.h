// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace pyrometer {

// The free ranges of an array whose entries are allocated in ranges, first fit.
class FreeRanges {
 public:
  explicit FreeRanges(uint32_t size) { ranges_.emplace(0, size); }

  // First index of `count` consecutive free entries; nothing if there are none.
  std::optional<uint32_t> Take(uint32_t count);
  void GiveBack(uint32_t first, uint32_t count);

  // True if all `size` entries are free.
  bool AllFree(uint32_t size) const {
    return ranges_.size() == 1 && ranges_.begin()->second == size;
  }

 private:
  std::map<uint32_t, uint32_t> ranges_;  // first -> count; neighbours are merged
};

}  // namespace pyrometer
