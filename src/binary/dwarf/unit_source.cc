// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf/unit_source.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

namespace pyrometer {
namespace {

using Attribute = DwarfAttribute;

constexpr size_t kMostUnits = size_t{1} << 20;
// Of each kind so much is remembered.
constexpr size_t kMostTables = 64;
constexpr size_t kMostContexts = 256;
constexpr size_t kMostOrigins = size_t{1} << 18;
constexpr size_t kMostRanges = size_t{1} << 16;  // of one entry

uint32_t ToLine(const DwarfValue& value) {
  const bool is_line =
      value.kind == DwarfClass::kConstant && value.number <= std::numeric_limits<uint32_t>::max();
  return is_line ? static_cast<uint32_t>(value.number) : 0;
}

uint64_t Sized(std::span<const std::byte> bytes, unsigned size) {
  DwarfCursor cursor(bytes);
  return size == 4 ? cursor.Fixed<uint32_t>() : cursor.Fixed<uint64_t>();
}

// Before version 4 an offset in another section had no form of its own.
std::optional<uint64_t> OffsetOf(const DwarfValue& value) {
  const bool is_offset = value.kind == DwarfClass::kOffset || value.kind == DwarfClass::kConstant;
  return is_offset ? std::optional(value.number) : std::nullopt;
}

// What lld has in the place of the address of code that it left out.
bool IsTombstone(uint64_t address) {
  return address >= std::numeric_limits<uint64_t>::max() - 1;
}

bool IsC(const DwarfValue& language) {
  if (language.kind != DwarfClass::kConstant) return false;
  constexpr uint64_t kC17 = 0x2c;
  switch (language.number) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case kC17:
      return true;
    default:
      return false;
  }
}

}  // namespace

DwarfUnits::DwarfUnits(DwarfSections& sections, bool is_alternate)
    : sections_(sections), is_alternate_(is_alternate) {
  if (sections.alternate != nullptr) {
    alternate_.reset(new DwarfUnits(*sections.alternate, true));
  }
}

Result<void> DwarfUnits::Find() {
  is_searched_ = true;
  for (uint64_t offset = 0; offset < sections_.info.size();) {
    const std::optional<DwarfUnit> unit = DwarfUnitAt(sections_.info, offset);
    if (!unit) break;
    if (offsets_.size() == kMostUnits) return Fail(ErrorCode::kExhausted, "too many units");
    offsets_.push_back(offset);
    offset = unit->end;
  }
  return {};
}

Result<DwarfUnitContext> DwarfUnits::Open(uint64_t offset) {
  const std::optional<DwarfUnit> unit = DwarfUnitAt(sections_.info, offset);
  if (!unit || unit->entries == unit->end) {
    return Fail(ErrorCode::kUnsupported, "no unit of DWARF 2 to 5");
  }
  DwarfUnitContext context{.unit = *unit};
  ASSIGN_OR_RETURN(context.abbreviations, AbbreviationsOf(*unit));
  DwarfCursor cursor(sections_.info.At(
      unit->entries, std::min<uint64_t>(DwarfSection::kMostAtOnce, unit->end - unit->entries)));
  DwarfEntry entry;
  if (!context.abbreviations->ReadEntry(cursor, *unit, unit->entries, entry)) {
    return Fail(ErrorCode::kMalformed, "a unit has no first entry");
  }
  const auto base_of = [&](Attribute attribute) { return OffsetOf(entry.Get(attribute)); };
  context.string_offsets = base_of(Attribute::kStringOffsets);
  context.addresses = base_of(Attribute::kAddresses);
  context.range_lists = base_of(Attribute::kRangeLists);
  context.is_partial = entry.tag == DW_TAG_partial_unit;
  context.is_split = unit->type == DW_UT_skeleton || entry.Get(Attribute::kSplitName);
  context.has_scopes = !IsC(entry.Get(Attribute::kLanguage));
  context.lines = OffsetOf(entry.Get(Attribute::kLines));
  context.base_address = AddressOf(entry.Get(Attribute::kLowPc), context).value_or(0);
  const DwarfName directory = NameOf(entry.Get(Attribute::kDirectory), context);
  context.directory = {sections_.SectionOf(directory), directory.offset};
  return context;
}

Result<std::shared_ptr<const DwarfAbbreviations>> DwarfUnits::AbbreviationsOf(
    const DwarfUnit& unit) {
  // Their steps depend on sizes in the unit's head, too.
  const uint64_t key = unit.abbreviations << 5 | unit.version << 2 |
                       (unit.address_size == 8 ? 2U : 0U) | (unit.offset_size == 8 ? 1U : 0U);
  if (const auto known = abbreviations_.find(key); known != abbreviations_.end()) {
    return known->second;
  }
  ASSIGN_OR_RETURN(DwarfAbbreviations read,
                   DwarfAbbreviations::Read(sections_.abbreviations, unit));
  if (abbreviations_.size() == kMostTables) abbreviations_.clear();
  return abbreviations_[key] = std::make_shared<const DwarfAbbreviations>(std::move(read));
}

DwarfName DwarfUnits::NameOf(const DwarfValue& value, const DwarfUnitContext& context) {
  switch (value.kind) {
    case DwarfClass::kText:
      return {DwarfName::In::kInfo, is_alternate_, value.number};
    case DwarfClass::kString:
      return {DwarfName::In::kStrings, is_alternate_, value.number};
    case DwarfClass::kLineString:
      return {DwarfName::In::kLineStrings, is_alternate_, value.number};
    case DwarfClass::kStringIndex: {
      const unsigned size = context.unit.offset_size;
      if (!context.string_offsets) return {};
      const uint64_t at = *context.string_offsets + value.number * size;
      const auto bytes = sections_.string_offsets.At(at, size);
      if (bytes.size() < size) return {};
      return {DwarfName::In::kStrings, is_alternate_, Sized(bytes, size)};
    }
    case DwarfClass::kAlternateString:
      if (alternate_ == nullptr) return {};
      return {DwarfName::In::kStrings, true, value.number};
    default:
      return {};
  }
}

std::optional<DwarfScope> DwarfUnits::ScopeOf(const DwarfEntry& entry,
                                              const DwarfUnitContext& context) {
  if (!entry.has_children || !IsDwarfScope(entry.tag)) return std::nullopt;
  const DwarfValue name = entry.Get(Attribute::kName);
  const bool is_function = entry.tag == DW_TAG_subprogram;
  if (is_function && (!name || entry.Get(Attribute::kLinkageName))) return std::nullopt;
  return DwarfScope{.name = NameOf(name, context),
                    .has_name = static_cast<bool>(name),
                    .is_namespace = entry.tag == DW_TAG_namespace};
}

void DwarfUnits::ForgetOrigins() {
  origins_.clear();
  if (alternate_ != nullptr) alternate_->ForgetOrigins();
}

DwarfOrigin DwarfUnits::OriginOf(const DwarfEntry& entry, const DwarfUnitContext& context,
                                 std::span<const std::byte> own) {
  return Merge(entry, context, own, 0);
}

// What the entry says itself goes before what it refers to, but a linkage name before others.
DwarfOrigin DwarfUnits::Merge(const DwarfEntry& entry, const DwarfUnitContext& context,
                              std::span<const std::byte> own, unsigned steps) {
  DwarfOrigin merged{.name = NameOf(entry.Get(Attribute::kLinkageName), context),
                     .is_named_by_alternate = is_alternate_,
                     .named_by = entry.offset,
                     .start_line = ToLine(entry.Get(Attribute::kDeclarationLine))};
  merged.is_linkage_name = merged.name.in != DwarfName::In::kNowhere;
  if (!merged.is_linkage_name) merged.name = NameOf(entry.Get(Attribute::kName), context);
  for (const Attribute attribute : {Attribute::kOrigin, Attribute::kSpecification}) {
    const DwarfValue reference = entry.Get(attribute);
    const bool is_whole = merged.is_linkage_name && merged.start_line != 0;
    if (is_whole || !reference || steps == kMostReferences) continue;
    const DwarfOrigin of = FollowTo(reference, context, own, steps + 1);
    if (merged.start_line == 0) merged.start_line = of.start_line;
    const bool is_better = merged.name.in == DwarfName::In::kNowhere ||
                           (of.is_linkage_name && !merged.is_linkage_name);
    if (!is_better) continue;
    merged.name = of.name;
    merged.is_linkage_name = of.is_linkage_name;
    merged.named_by = of.named_by;
    merged.is_named_by_alternate = of.is_named_by_alternate;
  }
  return merged;
}

DwarfOrigin DwarfUnits::FollowTo(const DwarfValue& reference, const DwarfUnitContext& context,
                                 std::span<const std::byte> own, unsigned steps) {
  if (reference.kind == DwarfClass::kEntry) return Follow(reference.number, context, own, steps);
  const bool is_known = reference.kind == DwarfClass::kAlternateEntry && alternate_ != nullptr;
  return is_known ? alternate_->Follow(reference.number, {}, {}, steps) : DwarfOrigin();
}

DwarfOrigin DwarfUnits::Follow(uint64_t entry, const DwarfUnitContext& context,
                               std::span<const std::byte> own, unsigned steps) {
  if (const auto known = origins_.find(entry); known != origins_.end()) return known->second;
  const bool is_own = entry >= context.unit.entries && entry < context.unit.end;
  const auto other = is_own ? nullptr : ContextOf(entry);
  const DwarfUnitContext* const of = is_own ? &context : other.get();
  if (of == nullptr) return {};
  std::optional<DwarfEntry> read;
  if (is_own && !own.empty()) {
    const uint64_t base = of->unit.offset;
    DwarfCursor cursor(own, entry - base);
    if (!of->abbreviations->ReadEntry(cursor, of->unit, base, read.emplace())) return {};
  } else if (!ReadEntryAt(entry, *of, read) || !read) {
    return {};
  }
  // Nothing refers to the bytes any more, and none of another unit are at hand.
  const DwarfOrigin found = Merge(*read, *of, is_own ? own : std::span<const std::byte>(), steps);
  if (origins_.size() == kMostOrigins) origins_.clear();
  origins_[entry] = found;
  return found;
}

std::optional<uint64_t> DwarfUnits::ReadEntryAt(uint64_t offset, const DwarfUnitContext& context,
                                                std::optional<DwarfEntry>& entry) {
  const DwarfUnit& unit = context.unit;
  if (offset < unit.entries || offset >= unit.end) return std::nullopt;
  DwarfCursor cursor(
      sections_.info.At(offset, std::min<uint64_t>(DwarfSection::kMostAtOnce, unit.end - offset)));
  if (!context.abbreviations->ReadEntry(cursor, unit, offset, entry.emplace())) entry.reset();
  return cursor.ok() ? std::optional(offset + cursor.position()) : std::nullopt;
}

std::shared_ptr<const DwarfUnitContext> DwarfUnits::ContextOf(uint64_t entry) {
  // Of an alternate file only when something refers to it. Those beyond the first are not known.
  if (!is_searched_) (void)Find();
  const auto behind = std::ranges::upper_bound(offsets_, entry);
  if (behind == offsets_.begin()) return nullptr;
  const uint64_t offset = *std::prev(behind);
  if (const auto known = contexts_.find(offset); known != contexts_.end()) {
    return known->second;
  }
  Result<DwarfUnitContext> context = Open(offset);
  if (contexts_.size() == kMostContexts) contexts_.clear();
  std::shared_ptr<const DwarfUnitContext> kept;  // null: it cannot be read
  if (context) kept = std::make_shared<const DwarfUnitContext>(*std::move(context));
  return contexts_[offset] = kept;
}

std::optional<uint64_t> DwarfUnits::AddressAt(uint64_t index, const DwarfUnitContext& context) {
  const unsigned size = context.unit.address_size;
  if (!context.addresses) return std::nullopt;
  const auto bytes = sections_.addresses.At(*context.addresses + index * size, size);
  return bytes.size() < size ? std::nullopt : std::optional(Sized(bytes, size));
}

std::optional<uint64_t> DwarfUnits::AddressOf(const DwarfValue& value,
                                              const DwarfUnitContext& context) {
  if (value.kind == DwarfClass::kAddress) return value.number;
  if (value.kind == DwarfClass::kAddressIndex) return AddressAt(value.number, context);
  return std::nullopt;
}

std::vector<DwarfRange> DwarfUnits::RangesOf(const DwarfEntry& entry,
                                             const DwarfUnitContext& context) {
  const DwarfValue ranges = entry.Get(Attribute::kRanges);
  if (ranges.kind == DwarfClass::kListIndex) {
    const unsigned size = context.unit.offset_size;
    if (!context.range_lists) return {};
    const auto bytes = sections_.range_lists.At(*context.range_lists + ranges.number * size, size);
    if (bytes.size() < size) return {};
    return RangeListAt(*context.range_lists + Sized(bytes, size), context);
  }
  if (const std::optional<uint64_t> offset = OffsetOf(ranges)) {
    return context.unit.version >= 5 ? RangeListAt(*offset, context)
                                     : OldRangesAt(*offset, context);
  }
  const std::optional<uint64_t> low = AddressOf(entry.Get(Attribute::kLowPc), context);
  const DwarfValue high = entry.Get(Attribute::kHighPc);
  if (!low || !high) return {};
  const std::optional<uint64_t> end = high.kind == DwarfClass::kConstant
                                          ? std::optional(*low + high.number)
                                          : AddressOf(high, context);
  if (!end || *end <= *low) return {};
  return {{*low, *end}};
}

// DWARF 4, section 2.17.3.
std::vector<DwarfRange> DwarfUnits::OldRangesAt(uint64_t offset, const DwarfUnitContext& context) {
  const size_t size = context.unit.address_size;
  const uint64_t largest =
      size == 4 ? std::numeric_limits<uint32_t>::max() : std::numeric_limits<uint64_t>::max();
  std::vector<DwarfRange> all;
  uint64_t base = context.base_address;
  for (size_t entries = 0; entries < kMostRanges; ++entries, offset += 2 * size) {
    const auto bytes = sections_.ranges.At(offset, 2 * size);
    if (bytes.size() < 2 * size) break;
    const uint64_t begin = Sized(bytes, context.unit.address_size);
    const uint64_t end = Sized(bytes.subspan(size), context.unit.address_size);
    if (begin == 0 && end == 0) break;
    if (begin == largest) {
      base = end;
    } else if (begin < end && !IsTombstone(base)) {
      all.push_back({base + begin, base + end});
    }
  }
  return all;
}

// DWARF 5, section 7.25.
std::vector<DwarfRange> DwarfUnits::RangeListAt(uint64_t offset, const DwarfUnitContext& context) {
  constexpr size_t kMostOfEntry = 24;
  const unsigned size = context.unit.address_size;
  std::vector<DwarfRange> all;
  uint64_t base = context.base_address;
  for (size_t entries = 0; entries < kMostRanges; ++entries) {
    DwarfCursor cursor(sections_.range_lists.At(offset, kMostOfEntry));
    const auto kind = cursor.Fixed<uint8_t>();
    const auto address = [&] {
      return size == 4 ? cursor.Fixed<uint32_t>() : cursor.Fixed<uint64_t>();
    };
    const auto indexed = [&] { return AddressAt(cursor.Uleb(), context).value_or(0); };
    DwarfRange range;
    switch (kind) {
      case DW_RLE_base_addressx:
        base = indexed();
        break;
      case DW_RLE_startx_endx:
        range.begin = indexed();
        range.end = indexed();
        break;
      case DW_RLE_startx_length:
        range.begin = indexed();
        range.end = range.begin + cursor.Uleb();
        break;
      case DW_RLE_offset_pair:
        range.begin = base + cursor.Uleb();
        range.end = base + cursor.Uleb();
        if (IsTombstone(base)) range = {};
        break;
      case DW_RLE_base_address:
        base = address();
        break;
      case DW_RLE_start_end:
        range.begin = address();
        range.end = address();
        break;
      case DW_RLE_start_length:
        range.begin = address();
        range.end = range.begin + cursor.Uleb();
        break;
      default:
        return all;
    }
    if (!cursor.ok()) return all;
    if (range.begin < range.end) all.push_back(range);
    offset += cursor.position();
  }
  return all;
}

}  // namespace pyrometer
