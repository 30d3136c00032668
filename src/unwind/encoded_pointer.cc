// SPDX-License-Identifier: Apache-2.0
#include "unwind/encoded_pointer.h"

namespace pyrometer {
namespace {

std::optional<uint64_t> ReadStored(DwarfCursor& cursor, unsigned format) {
  switch (format) {
    case kPointerAbsolute:
    case kPointerUdata8:
    case kPointerSigned:
    case kPointerSdata8:
      return cursor.Fixed<uint64_t>();
    case kPointerUleb:
      return cursor.Uleb();
    case kPointerUdata2:
      return cursor.Fixed<uint16_t>();
    case kPointerUdata4:
      return cursor.Fixed<uint32_t>();
    case kPointerSleb:
      return static_cast<uint64_t>(cursor.Sleb());
    case kPointerSdata2:
      return static_cast<uint64_t>(int64_t{cursor.Fixed<int16_t>()});
    case kPointerSdata4:
      return static_cast<uint64_t>(int64_t{cursor.Fixed<int32_t>()});
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<uint64_t> ReadEncodedPointer(DwarfCursor& cursor, uint8_t encoding,
                                           const PointerBases& bases) {
  const uint64_t here = bases.section + cursor.position();
  const std::optional<uint64_t> stored = ReadStored(cursor, encoding & kPointerFormat);
  if (!stored || !cursor.ok()) return std::nullopt;
  switch (encoding & kPointerRelation) {
    case kPointerAbsolute:
      return stored;
    case kPointerPcRelative:
      return here + *stored;
    case kPointerDataRelative:
      if (!bases.data) return std::nullopt;
      return *bases.data + *stored;
    default:
      return std::nullopt;
  }
}

}  // namespace pyrometer
