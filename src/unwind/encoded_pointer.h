// SPDX-License-Identifier: Apache-2.0
// Format: Linux Standard Base Core 5.0, section 10.5 (DWARF Extensions).
#pragma once

#include <cstdint>
#include <optional>

#include "binary/dwarf_cursor.h"

namespace pyrometer {

// DW_EH_PE_*: the low four bits say how a pointer is stored, the next three what it is relative to.
enum PointerEncoding : uint8_t {
  kPointerFormat = 0x0f,
  kPointerAbsolute = 0x00,
  kPointerUleb = 0x01,
  kPointerUdata2 = 0x02,
  kPointerUdata4 = 0x03,
  kPointerUdata8 = 0x04,
  kPointerSigned = 0x08,
  kPointerSleb = 0x09,
  kPointerSdata2 = 0x0a,
  kPointerSdata4 = 0x0b,
  kPointerSdata8 = 0x0c,
  kPointerRelation = 0xf0,
  kPointerPcRelative = 0x10,
  kPointerDataRelative = 0x30,
  kPointerOmitted = 0xff,
};

struct PointerBases {
  uint64_t section = 0;          // ELF address of the cursor's position 0
  std::optional<uint64_t> data;  // of .eh_frame_hdr, within it; call frame information has none
};

// The pointer at the cursor, an ELF address. Nothing if the bytes end, or if it is omitted,
// relative to something unknown, or indirect: only the running process knows where that leads.
std::optional<uint64_t> ReadEncodedPointer(DwarfCursor& cursor, uint8_t encoding,
                                           const PointerBases& bases);

}  // namespace pyrometer
