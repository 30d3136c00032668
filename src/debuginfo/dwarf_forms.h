// SPDX-License-Identifier: Apache-2.0
// Attribute values of DWARF's debugging information entries.
// Sources: DWARF 5, section 7.5.6; for forms of GNU, binutils' include/dwarf2.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "binary/dwarf_cursor.h"

namespace pyrometer {

// By which a unit's numbers are encoded.
struct DwarfFormat {
  uint16_t version = 0;
  uint8_t offset_size = 4;   // 4, or 8 in 64-bit DWARF
  uint8_t address_size = 8;  // 8: of other machines there is no code here
  bool operator==(const DwarfFormat&) const = default;
};

// What the code of a form says: its meaning depends on the form.
struct DwarfValue {
  uint16_t form = 0;
  uint64_t number = 0;      // constant, address, offset or index
  std::string_view text{};  // of DW_FORM_string; in the bytes that were read
};

// A name is longer than anything that is shown.
inline constexpr size_t kLongestDwarfString = size_t{1} << 20;

// Bytes that every value of this form takes; nothing if that differs or the form is unknown.
std::optional<uint32_t> SizeOfForm(uint16_t form, const DwarfFormat& format);

// The number of a form of `size` bytes: 1 of one that has none, 0 of one that is no number.
uint64_t ReadNumber(uint32_t size, DwarfCursor& in);

// Reads a value, or past it. Blocks and expressions have no number. False if the form is unknown or
// the cursor is not ok() any more. `constant` is that of DW_FORM_implicit_const.
bool ReadForm(uint16_t form, int64_t constant, const DwarfFormat& format, DwarfCursor& in,
              DwarfValue& out);

inline uint64_t ReadOffset(const DwarfFormat& format, DwarfCursor& in) {
  return format.offset_size == 8 ? in.Fixed<uint64_t>() : in.Fixed<uint32_t>();
}

}  // namespace pyrometer
