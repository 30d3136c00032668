// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "pyrometer/abi/unwind.h"

namespace pyrometer {

// All of a rule as two words, for comparing and hashing: it has no padding.
struct UnwindRuleBits {
  static UnwindRuleBits Of(const pyro_unwind_rule& rule) {
    static_assert(std::has_unique_object_representations_v<pyro_unwind_rule>);
    return std::bit_cast<UnwindRuleBits>(rule);
  }

  bool operator==(const UnwindRuleBits&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const UnwindRuleBits& bits) {
    return H::combine(std::move(h), bits.low, bits.high);
  }

  uint64_t low = 0;
  uint64_t high = 0;
};

}  // namespace pyrometer
