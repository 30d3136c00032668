// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "debuginfo/dwarf_file.h"
#include "debuginfo/source_sink.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Appends the code of an entry to `out`, by DW_AT_low_pc and DW_AT_high_pc or by DW_AT_ranges: what
// is not empty. False if these are malformed; what was read before stays in `out`.
// Sources: DWARF 5, section 2.17.3; DWARF 4, likewise.
bool ReadDwarfRanges(DwarfFile& file, const DwarfUnit& unit, const DwarfDie& die,
                     std::vector<SourceSink::Range>& out);

// Whether what begins at `address` can be code: it lies in an executable segment, and not in the
// ELF header that this may begin with. Linkers give what they have dropped the address 0.
bool MayBeCode(std::span<const Segment> segments, ElfAddress address);

}  // namespace pyrometer
