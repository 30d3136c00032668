// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/ids.h"

namespace pyrometer {

// A function's range. `name` is raw: mangled, with whatever bytes the file has.
struct Symbol {
  std::string_view name;
  ElfAddress start;
  uint64_t size = 0;
};

// The functions of one object by address. An immutable value made by SymbolTableBuilder; takes 16
// bytes per function plus the names. Any number of threads may use it.
class SymbolTable {
 public:
  SymbolTable() = default;

  // The function that `address` lies in, the innermost if there are several. Sizes are honoured:
  // between functions there is nothing. The name is valid as long as the table.
  std::optional<Symbol> Find(ElfAddress address) const;

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }

  // Memory use, in bytes.
  size_t bytes() const { return entries_.capacity() * sizeof(Entry) + names_.capacity(); }

 private:
  friend class SymbolTableBuilder;

  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Entry {
    uint32_t start = 0;  // relative to base_
    uint32_t size = 0;
    uint32_t name = 0;           // in names_, up to a NUL
    uint32_t enclosing = kNone;  // the next larger entry that contains this one's start
  };

  uint64_t base_ = 0;
  std::vector<Entry> entries_;  // by start; of equal starts, the smallest last
  std::string names_;
};

}  // namespace pyrometer
