// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "pyrometer/ids.h"

namespace pyrometer {

// Where code came of whose name nothing is known: what lay there before is no longer there.
class ClearedCode {
 public:
  void Add(uint64_t start, uint64_t end) {
    if (ranges_.size() < kMost) {
      ranges_.emplace_back(start, end);
    } else {
      // Rather too many.
      ranges_.back() = {std::min(ranges_.back().first, start),
                        std::max(ranges_.back().second, end)};
    }
  }
  bool Contains(Address address) const {
    return std::ranges::any_of(ranges_, [address](const auto& range) {
      return address.value() >= range.first && address.value() < range.second;
    });
  }
  bool empty() const { return ranges_.empty(); }

 private:
  static constexpr size_t kMost = 256;

  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

}  // namespace pyrometer
