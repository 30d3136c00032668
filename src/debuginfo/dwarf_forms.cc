// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_forms.h"

#include <dwarf.h>

namespace pyrometer {
namespace {

uint64_t ReadThree(DwarfCursor& in) {
  const uint64_t low = in.Fixed<uint16_t>();
  return low | uint64_t{in.Fixed<uint8_t>()} << 16;
}

// The size of a block; nothing for other forms.
std::optional<uint64_t> ReadBlockSize(uint16_t form, DwarfCursor& in) {
  switch (form) {
    case DW_FORM_block1:
      return in.Fixed<uint8_t>();
    case DW_FORM_block2:
      return in.Fixed<uint16_t>();
    case DW_FORM_block4:
      return in.Fixed<uint32_t>();
    case DW_FORM_block:
    case DW_FORM_exprloc:
      return in.Uleb();
    default:
      return std::nullopt;
  }
}

}  // namespace

uint64_t ReadNumber(uint32_t size, DwarfCursor& in) {
  switch (size) {
    case 0:
      return 1;  // DW_FORM_flag_present
    case 1:
      return in.Fixed<uint8_t>();
    case 2:
      return in.Fixed<uint16_t>();
    case 3:
      return ReadThree(in);
    case 4:
      return in.Fixed<uint32_t>();
    case 8:
      return in.Fixed<uint64_t>();
    default:
      in.Bytes(size);
      return 0;
  }
}

std::optional<uint32_t> SizeOfForm(uint16_t form, const DwarfFormat& format) {
  switch (form) {
    case DW_FORM_flag_present:
      return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return 8;
    case DW_FORM_data16:
      return 16;
    case DW_FORM_addr:
      return format.address_size;
    case DW_FORM_ref_addr:
      return format.version <= 2 ? format.address_size : format.offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return format.offset_size;
    default:
      return std::nullopt;
  }
}

bool ReadForm(uint16_t form, int64_t constant, const DwarfFormat& format, DwarfCursor& in,
              DwarfValue& out) {
  // The real form stands with the value; one indirection is enough.
  if (form == DW_FORM_indirect) {
    form = static_cast<uint16_t>(in.Uleb());
    if (form == DW_FORM_indirect || form == DW_FORM_implicit_const) return false;
  }
  out = {.form = form};
  if (const std::optional<uint32_t> size = SizeOfForm(form, format)) {
    out.number = ReadNumber(*size, in);
    return in.ok();
  }
  if (const auto size = ReadBlockSize(form, in)) {
    in.Bytes(*size);
    return in.ok();
  }
  switch (form) {
    case DW_FORM_string:
      out.text = in.String(kLongestDwarfString);
      return in.ok();
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_str_index:
    case DW_FORM_GNU_addr_index:
      out.number = in.Uleb();
      return in.ok();
    case DW_FORM_sdata:
      out.number = static_cast<uint64_t>(in.Sleb());
      return in.ok();
    case DW_FORM_implicit_const:
      out.number = static_cast<uint64_t>(constant);
      return in.ok();
    default:
      return false;
  }
}

}  // namespace pyrometer
