// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "binary/dwarf/line_table.h"
#include "binary/dwarf_functions.h"

namespace pyrometer {

// That the code of a range is of a call, by its number.
struct DwarfInlinedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t call = 0;
};

// What is the same for code from `begin` to `end`: its innermost call and its line. Of several
// calls that claim to have code the one with the greatest number is it, as those within come after
// those around them; so has LLVM's symbolizer it. Takes O(n log n) steps. `calls` gets sorted.
std::vector<DwarfRow> RowsOf(uint64_t begin, uint64_t end, std::span<DwarfInlinedRange> calls,
                             const std::vector<DwarfLineTable::Row>& lines);

}  // namespace pyrometer
