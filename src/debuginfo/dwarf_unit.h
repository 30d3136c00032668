// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "debuginfo/dwarf_abbrevs.h"
#include "debuginfo/dwarf_forms.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What a unit of .debug_info begins with. Offsets are the section's.
// Source: DWARF 5, section 7.5.1.
struct DwarfUnitHeader {
  uint64_t offset = 0;
  uint64_t end = 0;    // where the next unit begins
  uint64_t first = 0;  // where its first entry is
  DwarfFormat format;
  uint8_t type = 0;  // DW_UT_*; of version 5, else DW_UT_compile
  uint64_t abbrevs = 0;
  uint64_t dwo_id = 0;  // of skeleton and split units of version 5
};

// Enough for any header.
inline constexpr size_t kMostOfUnitHeader = 48;

// Reads the header at `offset` from `bytes`, which begin there. `section_size`: where units must
// end. Errors: kMalformed: there is no telling where the next unit is; kUnsupported: of a version
// or for a machine that is not known, `out` has its `end`.
Result<void> ParseUnitHeader(std::span<const std::byte> bytes, uint64_t offset,
                             uint64_t section_size, DwarfUnitHeader& out);

// A unit, with what its first entry says of it.
struct DwarfUnit {
  DwarfUnitHeader header;
  std::shared_ptr<const DwarfAbbrevs> abbrevs;
  uint16_t tag = 0;               // of its first entry
  uint64_t children = 0;          // where the first entry's children begin; 0: it has none
  uint64_t language = 0;          // DW_LANG_*
  uint64_t low_pc = 0;            // to which ranges may be relative
  std::string directory;          // in which the compiler ran
  std::optional<uint64_t> lines;  // in .debug_line
  uint64_t string_offsets = 0;    // bases
  uint64_t addresses = 0;
  uint64_t range_lists = 0;
  uint64_t ranges = 0;  // of GNU's split units
  // Of a skeleton: the number of the split unit that has its entries; of that, too.
  std::optional<uint64_t> dwo_id;
  std::string
      dwo_name;  // of a skeleton: the path of the file with that, absolute or in `directory`
};

}  // namespace pyrometer
