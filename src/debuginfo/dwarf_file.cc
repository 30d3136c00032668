// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_file.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace pyrometer {
namespace {

constexpr size_t kUnitStep = size_t{1} << 20;
constexpr size_t kUsualEntry = 512;
constexpr size_t kEntryStep = size_t{4} << 10;  // they lie anywhere
constexpr uint64_t kUsualAbbrevs = uint64_t{4} << 10;
constexpr size_t kMostOfEntry = size_t{64} << 10;
constexpr size_t kMostAbbrevMemory = size_t{16} << 20;
constexpr uint64_t kMostOfAbbrevs = uint64_t{32} << 20;
constexpr size_t kMostOpened = 1024;
constexpr size_t kMostHeaders = size_t{1} << 20;

ReadAhead All(const ByteSource& section, size_t step = ReadAhead::kDefaultStep) {
  return {section, 0, section.size(), step};
}

template <typename T>
std::optional<uint64_t> NumberAt(ReadAhead& section, uint64_t offset) {
  const auto bytes = section.At(offset, sizeof(T));
  if (!bytes || bytes->size() < sizeof(T)) return std::nullopt;
  T number;
  std::memcpy(&number, bytes->data(), sizeof(T));
  return number;
}

}  // namespace

DwarfFile::DwarfFile(std::shared_ptr<const DwarfSections> sections, const Others& others)
    : sections_(std::move(sections)),
      others_(others),
      units_(All(sections_->Of(DwarfSection::kInfo), kUnitStep)),
      entries_(All(sections_->Of(DwarfSection::kInfo), kEntryStep)),
      abbrev_bytes_(All(sections_->Of(DwarfSection::kAbbrev))),
      string_offsets_(All(sections_->Of(DwarfSection::kStrOffsets))),
      addresses_(All(sections_->Of(DwarfSection::kAddr))),
      lines_(All(sections_->Of(DwarfSection::kLine), kUnitStep)),
      ranges_(All(sections_->Of(DwarfSection::kRanges))),
      range_lists_(All(sections_->Of(DwarfSection::kRngLists))),
      strings_(sections_->Of(DwarfSection::kStr)),
      line_strings_(sections_->Of(DwarfSection::kLineStr)) {}

Result<void> DwarfFile::ReadHeader(uint64_t offset, DwarfUnitHeader& out) {
  ASSIGN_OR_RETURN(const auto bytes, units_.At(offset, kMostOfUnitHeader));
  return ParseUnitHeader(bytes, offset, sections_->Of(DwarfSection::kInfo).size(), out);
}

Result<std::span<const std::byte>> DwarfFile::ReadUnit(const DwarfUnitHeader& header) {
  const uint64_t size = header.end - header.offset;
  if (size > kMostOfUnit) return Fail(ErrorCode::kExhausted, "a unit of {} bytes", size);
  return units_.At(header.offset, size);
}

Result<std::shared_ptr<const DwarfAbbrevs>> DwarfFile::Abbrevs(const DwarfUnitHeader& header) {
  const auto known = abbrevs_.find(header.abbrevs);
  if (known != abbrevs_.end() && known->second.first == header.format) return known->second.second;
  for (uint64_t size = kUsualAbbrevs;; size *= 4) {
    ASSIGN_OR_RETURN(const auto bytes, abbrev_bytes_.At(header.abbrevs, size));
    Result<DwarfAbbrevs> table = DwarfAbbrevs::Parse(bytes, header.format);
    if (!table) {
      const bool is_cut = table.error().code() == ErrorCode::kExhausted;
      if (is_cut && bytes.size() == size && size < kMostOfAbbrevs) continue;
      return std::move(table).error();
    }
    if (abbrev_memory_ > kMostAbbrevMemory) {
      abbrevs_.clear();
      abbrev_memory_ = 0;
    }
    abbrev_memory_ += table->bytes();
    auto shared = std::make_shared<const DwarfAbbrevs>(*std::move(table));
    abbrevs_[header.abbrevs] = {header.format, shared};
    return shared;
  }
}

// Without bases of its own, a split unit's tables are behind their headers.
void DwarfFile::TakeFrom(const Split& split, DwarfUnit& unit) {
  const DwarfFormat& format = unit.header.format;
  const bool has_headers = format.version >= 5;
  const uint64_t of_strings = format.offset_size == 8 ? 16 : 8;
  const uint64_t of_lists = format.offset_size == 8 ? 20 : 12;
  unit.string_offsets = split.string_offsets + (has_headers ? of_strings : 0);
  unit.range_lists = split.range_lists + (has_headers ? of_lists : 0);
  unit.addresses = split.skeleton.addresses;
  unit.ranges = split.skeleton.ranges;
  unit.low_pc = split.skeleton.low_pc;
  unit.directory = split.skeleton.directory;
}

Result<DwarfUnit> DwarfFile::OpenUnit(DwarfUnitHeader header, std::span<const std::byte> bytes,
                                      const Split* split) {
  if (split != nullptr) header.abbrevs += split->abbrevs;
  DwarfUnit unit;
  unit.header = header;
  ASSIGN_OR_RETURN(unit.abbrevs, Abbrevs(header));
  DwarfCursor in(bytes, header.first - header.offset);
  const DwarfAbbrevs::Entry* const entry = unit.abbrevs->Find(in.Uleb());
  DwarfDie die;
  if (entry == nullptr || !unit.abbrevs->Read(*entry, header.format, in, die)) {
    return Fail(ErrorCode::kMalformed, "the unit at {:#x} has no first entry", header.offset);
  }
  unit.tag = die.tag;
  if (die.has_children) unit.children = header.offset + in.position();
  unit.language = die.NumberOr(DwarfAttribute::kLanguage, 0);
  unit.string_offsets = die.NumberOr(DwarfAttribute::kStrOffsetsBase, 0);
  unit.addresses = die.NumberOr(DwarfAttribute::kAddrBase, 0);
  unit.range_lists = die.NumberOr(DwarfAttribute::kRngListsBase, 0);
  unit.ranges = die.NumberOr(DwarfAttribute::kRangesBase, 0);
  if (header.type == DW_UT_skeleton || header.type == DW_UT_split_compile) {
    unit.dwo_id = header.dwo_id;
  } else if (die.Has(DwarfAttribute::kDwoId)) {
    unit.dwo_id = die.NumberOr(DwarfAttribute::kDwoId, 0);
  }
  if (split != nullptr) TakeFrom(*split, unit);
  if (die.Has(DwarfAttribute::kStmtList)) unit.lines = die.NumberOr(DwarfAttribute::kStmtList, 0);
  const DwarfValue* const low = die.Find(DwarfAttribute::kLowPc);
  if (low != nullptr && split == nullptr) unit.low_pc = Address(unit, *low).value_or(0);
  const DwarfValue* const directory = die.Find(DwarfAttribute::kCompDir);
  if (directory != nullptr && split == nullptr) {
    unit.directory = String(unit, *directory);
  }
  const DwarfValue* const dwo_name = die.Find(DwarfAttribute::kDwoName);
  if (dwo_name != nullptr && split == nullptr) unit.dwo_name = String(unit, *dwo_name);
  return unit;
}

Result<DwarfUnit> DwarfFile::OpenUnit(const DwarfUnitHeader& header) {
  const uint64_t size = std::min<uint64_t>(kMostOfEntry, header.end - header.offset);
  ASSIGN_OR_RETURN(const auto bytes, entries_.At(header.offset, size));
  return OpenUnit(header, bytes);
}

// Units are found by the way of their headers, from the first on.
bool DwarfFile::ScanHeadersTo(uint64_t offset) {
  const uint64_t size = sections_->Of(DwarfSection::kInfo).size();
  while (scanned_to_ <= offset && scanned_to_ < size && headers_.size() < kMostHeaders) {
    const auto bytes = entries_.At(scanned_to_, kMostOfUnitHeader);
    if (!bytes) return false;
    DwarfUnitHeader header;
    const Result<void> parsed = ParseUnitHeader(*bytes, scanned_to_, size, header);
    if (!parsed && parsed.error().code() == ErrorCode::kMalformed) return false;
    if (parsed) headers_.push_back(header);
    scanned_to_ = header.end;
  }
  return scanned_to_ > offset;
}

const DwarfUnit* DwarfFile::UnitAt(uint64_t offset) {
  if (others_.skeletons != nullptr) return nullptr;  // split units refer to no others
  if (!ScanHeadersTo(offset)) return nullptr;
  const auto after = std::ranges::upper_bound(headers_, offset, {}, &DwarfUnitHeader::offset);
  if (after == headers_.begin()) return nullptr;
  const DwarfUnitHeader& header = *std::prev(after);
  if (offset < header.first || offset >= header.end) return nullptr;
  if (opened_.size() >= kMostOpened && !opened_.contains(header.offset)) opened_.clear();
  const auto [known, is_new] = opened_.try_emplace(header.offset);
  if (is_new) {
    Result<DwarfUnit> unit = OpenUnit(header);
    if (unit) known->second = std::make_unique<const DwarfUnit>(*std::move(unit));
  }
  return known->second.get();
}

bool DwarfFile::ReadEntry(const DwarfUnit& unit, uint64_t offset, DwarfDie& out) {
  const uint64_t left = unit.header.end - std::min(offset, unit.header.end);
  for (const uint64_t most : {kUsualEntry, kMostOfEntry}) {
    const auto bytes = entries_.At(offset, std::min(left, most));
    if (!bytes) return false;
    DwarfCursor in(*bytes);
    const DwarfAbbrevs::Entry* const entry = unit.abbrevs->Find(in.Uleb());
    if (entry == nullptr) return false;
    if (unit.abbrevs->Read(*entry, unit.header.format, in, out)) return true;
  }
  return false;
}

std::optional<uint64_t> DwarfFile::OffsetAt(ReadAhead& section, const DwarfFormat& format,
                                            uint64_t base, uint64_t index) {
  if (index > ~uint64_t{0} / 8 - base) return std::nullopt;
  if (format.offset_size == 8) return NumberAt<uint64_t>(section, base + index * 8);
  return NumberAt<uint32_t>(section, base + index * 4);
}

std::string_view DwarfFile::String(const DwarfUnit& unit, const DwarfValue& value) {
  switch (value.form) {
    case DW_FORM_string:
      return value.text;
    case DW_FORM_strp:
      return strings_.At(value.number);
    case DW_FORM_line_strp:
      return line_strings_.At(value.number);
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
      return others_.supplement == nullptr ? std::string_view()
                                           : others_.supplement->strings_.At(value.number);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index: {
      const auto offset =
          OffsetAt(string_offsets_, unit.header.format, unit.string_offsets, value.number);
      return offset ? strings_.At(*offset) : std::string_view();
    }
    default:
      return {};
  }
}

std::optional<uint64_t> DwarfFile::AddressAt(uint64_t base, uint64_t index) {
  if (others_.skeletons != nullptr) return others_.skeletons->AddressAt(base, index);
  if (index > ~uint64_t{0} / 8 - base) return std::nullopt;
  return NumberAt<uint64_t>(addresses_, base + index * 8);
}

std::optional<uint64_t> DwarfFile::Address(const DwarfUnit& unit, const DwarfValue& value) {
  switch (value.form) {
    case DW_FORM_addr:
      return value.number;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return AddressAt(unit.addresses, value.number);
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> DwarfFile::RangeList(const DwarfUnit& unit, const DwarfValue& value) {
  if (value.form != DW_FORM_rnglistx) return value.number;
  const auto offset = OffsetAt(range_lists_, unit.header.format, unit.range_lists, value.number);
  return offset ? std::optional(unit.range_lists + *offset) : std::nullopt;
}

}  // namespace pyrometer
