// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_package.h"

#include <dwarf.h>

#include <cstring>
#include <span>
#include <vector>

namespace pyrometer {
namespace {

// Columns of an index. DW_SECT_RNGLISTS is of version 5; it was another section before.
constexpr uint32_t kInfo = 1;
constexpr uint32_t kAbbrevs = 3;
constexpr uint32_t kStringOffsets = 6;
constexpr uint32_t kRangeLists = 8;
constexpr uint32_t kMostColumns = 16;

// The numbers of a table, which was found to fit into its section.
template <typename T>
class Numbers {
 public:
  Numbers(std::span<const std::byte> bytes, uint64_t at, uint64_t count)
      : bytes_(bytes.subspan(at, count * sizeof(T))) {}
  T operator[](uint64_t index) const {
    T number;
    std::memcpy(&number, bytes_.data() + index * sizeof(T), sizeof(T));
    return number;
  }

 private:
  std::span<const std::byte> bytes_;
};

void Set(uint32_t column, uint64_t offset, uint32_t version, DwarfContribution& out) {
  if (column == kInfo) out.info = offset;
  if (column == kAbbrevs) out.abbrevs = offset;
  if (column == kStringOffsets) out.string_offsets = offset;
  if (column == kRangeLists && version >= 5) out.range_lists = offset;
}

}  // namespace

Result<DwarfPackage> DwarfPackage::Read(const ElfFile& elf, const SectionTable& sections,
                                        DwarfFile& file) {
  DwarfPackage package;
  const Section* const index = sections.Find(".debug_cu_index");
  if (index == nullptr) {
    package.ScanUnits(file);
  } else {
    ASSIGN_OR_RETURN(const auto bytes, ReadSection(elf, *index, kMostOfIndex));
    RETURN_IF_ERROR(package.ReadIndex(bytes));
  }
  return package;
}

Result<void> DwarfPackage::ReadIndex(std::span<const std::byte> bytes) {
  const Error malformed = Fail(ErrorCode::kMalformed, "no index of split units");
  DwarfCursor in(bytes);
  uint32_t version = in.Fixed<uint16_t>();  // of GNU's index it has four bytes
  in.Fixed<uint16_t>();
  const auto columns = in.Fixed<uint32_t>();
  const auto rows = in.Fixed<uint32_t>();
  const auto slots = in.Fixed<uint32_t>();
  const bool is_known = version == 2 || version == 5;
  if (!in.ok() || !is_known || columns > kMostColumns || rows > kMostUnits || rows > slots ||
      slots > 8 * kMostUnits) {
    return malformed;
  }
  const uint64_t ids_at = in.position();
  const uint64_t rows_at = ids_at + uint64_t{slots} * sizeof(uint64_t);
  const uint64_t columns_at = rows_at + uint64_t{slots} * sizeof(uint32_t);
  const uint64_t offsets_at = columns_at + uint64_t{columns} * sizeof(uint32_t);
  const uint64_t offsets = uint64_t{rows} * columns;
  if (!Within(offsets_at, offsets * sizeof(uint32_t), bytes.size())) return malformed;
  const Numbers<uint64_t> ids(bytes, ids_at, slots);
  const Numbers<uint32_t> row_of(bytes, rows_at, slots);
  const Numbers<uint32_t> column(bytes, columns_at, columns);
  const Numbers<uint32_t> offset(bytes, offsets_at, offsets);
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const uint64_t row = row_of[slot];  // from 1 on; 0: the slot is free
    if (row == 0 || row > rows) continue;
    DwarfContribution unit;
    for (uint32_t c = 0; c < columns; ++c) {
      Set(column[c], offset[(row - 1) * columns + c], version, unit);
    }
    units_.emplace(ids[slot], unit);
  }
  return {};
}

// What a compiler wrote has one unit, or some of types besides.
void DwarfPackage::ScanUnits(DwarfFile& file) {
  const uint64_t size = file.sections().Of(DwarfSection::kInfo).size();
  DwarfUnitHeader header;
  for (uint64_t at = 0; at < size && units_.size() < kMostUnits; at = header.end) {
    const Result<void> read = file.ReadHeader(at, header);
    if (!read && read.error().code() != ErrorCode::kUnsupported) return;
    if (!read || (header.type != DW_UT_compile && header.type != DW_UT_split_compile)) continue;
    const Result<DwarfUnit> unit = file.OpenUnit(header);
    if (unit && unit->dwo_id) units_.emplace(*unit->dwo_id, DwarfContribution{.info = at});
  }
}

}  // namespace pyrometer
