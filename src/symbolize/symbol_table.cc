// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table.h"

#include <algorithm>
#include <limits>

namespace pyrometer {

std::optional<Symbol> SymbolTable::Find(ElfAddress address) const {
  const uint64_t offset = address.value() - base_;  // wraps below base_, which is out of range
  if (offset > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  const auto next = std::ranges::upper_bound(entries_, offset, {}, &Entry::start);
  if (next == entries_.begin()) return std::nullopt;
  auto index = static_cast<uint32_t>(next - entries_.begin() - 1);
  for (; index != kNone; index = entries_[index].enclosing) {
    const Entry& entry = entries_[index];
    if (offset - entry.start >= entry.size) continue;
    return Symbol{.name = names_.data() + entry.name,
                  .start = ElfAddress(base_ + entry.start),
                  .size = entry.size};
  }
  return std::nullopt;
}

}  // namespace pyrometer
