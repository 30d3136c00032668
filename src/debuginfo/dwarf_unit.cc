// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_unit.h"

#include <dwarf.h>

namespace pyrometer {

Result<void> ParseUnitHeader(std::span<const std::byte> bytes, uint64_t offset,
                             uint64_t section_size, DwarfUnitHeader& out) {
  constexpr uint32_t k64Bit = 0xffffffff;
  constexpr uint32_t kReserved = 0xfffffff0;
  DwarfCursor in(bytes);
  out = DwarfUnitHeader();
  out.offset = offset;
  uint64_t length = in.Fixed<uint32_t>();
  if (length == k64Bit) {
    length = in.Fixed<uint64_t>();
    out.format.offset_size = 8;
  } else if (length >= kReserved) {
    return Fail(ErrorCode::kMalformed, "a unit's length is {:#x}", length);
  }
  const uint64_t begin = offset + in.position();
  if (!in.ok() || length == 0 || begin > section_size || length > section_size - begin) {
    return Fail(ErrorCode::kMalformed, "a unit of {} bytes at {:#x} does not fit", length, offset);
  }
  out.end = begin + length;
  out.format.version = in.Fixed<uint16_t>();
  if (out.format.version < 2 || out.format.version > 5) {
    return Fail(ErrorCode::kUnsupported, "DWARF {}", out.format.version);
  }
  out.type = DW_UT_compile;
  if (out.format.version >= 5) {
    out.type = in.Fixed<uint8_t>();
    out.format.address_size = in.Fixed<uint8_t>();
    out.abbrevs = ReadOffset(out.format, in);
  } else {
    out.abbrevs = ReadOffset(out.format, in);
    out.format.address_size = in.Fixed<uint8_t>();
  }
  if (out.type == DW_UT_skeleton || out.type == DW_UT_split_compile) {
    out.dwo_id = in.Fixed<uint64_t>();
  } else if (out.type == DW_UT_type || out.type == DW_UT_split_type) {
    in.Fixed<uint64_t>();
    ReadOffset(out.format, in);
  }
  out.first = offset + in.position();
  if (!in.ok() || out.first > out.end || out.format.address_size != 8) {
    return Fail(ErrorCode::kUnsupported, "the unit at {:#x} has a strange header", offset);
  }
  return {};
}

}  // namespace pyrometer
