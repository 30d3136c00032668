// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf/entry.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

namespace pyrometer {
namespace {

constexpr size_t kMostDwarfText = size_t{1} << 20;            // bytes of one in .debug_info
constexpr uint64_t kMostOfAbbreviations = uint64_t{1} << 20;  // steps

uint64_t Sized(DwarfCursor& cursor, unsigned size) {
  switch (size) {
    case 1:
      return cursor.Fixed<uint8_t>();
    case 2:
      return cursor.Fixed<uint16_t>();
    case 4:
      return cursor.Fixed<uint32_t>();
    default:
      return cursor.Fixed<uint64_t>();
  }
}

uint64_t Sized3(DwarfCursor& cursor) {
  const uint64_t low = cursor.Fixed<uint16_t>();
  return low | uint64_t{cursor.Fixed<uint8_t>()} << 16;
}

bool HasTypeSignature(uint8_t type) {
  return type == DW_UT_type || type == DW_UT_split_type;
}

// The bytes of a value of `form`, if all have as many.
std::optional<uint64_t> FixedSizeOf(uint64_t form, const DwarfUnit& unit) {
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return 0;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
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
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
      return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return 8;
    case DW_FORM_data16:
      return 16;
    case DW_FORM_addr:
      return unit.address_size;
    case DW_FORM_ref_addr:
      return unit.version <= 2 ? unit.address_size : unit.offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return unit.offset_size;
    default:
      return std::nullopt;
  }
}

bool IsNumber(uint64_t form) {
  switch (form) {
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      return true;
    default:
      return false;
  }
}

DwarfClass ClassOf(uint64_t form) {
  switch (form) {
    case DW_FORM_addr:
      return DwarfClass::kAddress;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return DwarfClass::kAddressIndex;
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
    case DW_FORM_sdata:
      return DwarfClass::kConstant;
    case DW_FORM_flag:
    case DW_FORM_flag_present:
      return DwarfClass::kFlag;
    case DW_FORM_sec_offset:
      return DwarfClass::kOffset;
    case DW_FORM_rnglistx:
      return DwarfClass::kListIndex;
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
    case DW_FORM_ref_addr:
      return DwarfClass::kEntry;
    case DW_FORM_strp:
      return DwarfClass::kString;
    case DW_FORM_line_strp:
      return DwarfClass::kLineString;
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
      return DwarfClass::kStringIndex;
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
      return DwarfClass::kAlternateEntry;
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
      return DwarfClass::kAlternateString;
    default:
      return DwarfClass::kOther;
  }
}

// Of forms that are neither of one size nor a number.
DwarfValue TakeOther(DwarfCursor& cursor, uint64_t form, const DwarfUnit& unit, uint64_t base) {
  switch (form) {
    case DW_FORM_string: {
      const uint64_t at = base + cursor.position();
      cursor.String(kMostDwarfText);
      return {DwarfClass::kText, at};
    }
    case DW_FORM_block1:
      cursor.Bytes(cursor.Fixed<uint8_t>());
      break;
    case DW_FORM_block2:
      cursor.Bytes(cursor.Fixed<uint16_t>());
      break;
    case DW_FORM_block4:
      cursor.Bytes(cursor.Fixed<uint32_t>());
      break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
      cursor.Bytes(cursor.Uleb());
      break;
    case DW_FORM_indirect: {
      // Not within each other, and no constant that the abbreviation would have.
      const uint64_t inner = cursor.Uleb();
      if (inner != DW_FORM_indirect && inner != DW_FORM_implicit_const) {
        return TakeDwarfValue(cursor, inner, unit, base);
      }
      [[fallthrough]];
    }
    default:
      cursor.Bytes(std::numeric_limits<uint64_t>::max());  // fails
  }
  return {DwarfClass::kOther, 0};
}

struct Wanted {
  uint64_t attribute;  // DW_AT_*
  DwarfAttribute as;
};

constexpr Wanted kOfUnits[] = {{DW_AT_low_pc, DwarfAttribute::kLowPc},
                               {DW_AT_stmt_list, DwarfAttribute::kLines},
                               {DW_AT_comp_dir, DwarfAttribute::kDirectory},
                               {DW_AT_str_offsets_base, DwarfAttribute::kStringOffsets},
                               {DW_AT_addr_base, DwarfAttribute::kAddresses},
                               {DW_AT_GNU_addr_base, DwarfAttribute::kAddresses},
                               {DW_AT_rnglists_base, DwarfAttribute::kRangeLists},
                               {DW_AT_dwo_name, DwarfAttribute::kSplitName},
                               {DW_AT_GNU_dwo_name, DwarfAttribute::kSplitName},
                               {DW_AT_language, DwarfAttribute::kLanguage}};

constexpr Wanted kOfFunctions[] = {{DW_AT_name, DwarfAttribute::kName},
                                   {DW_AT_linkage_name, DwarfAttribute::kLinkageName},
                                   {DW_AT_MIPS_linkage_name, DwarfAttribute::kLinkageName},
                                   {DW_AT_low_pc, DwarfAttribute::kLowPc},
                                   {DW_AT_high_pc, DwarfAttribute::kHighPc},
                                   {DW_AT_ranges, DwarfAttribute::kRanges},
                                   {DW_AT_abstract_origin, DwarfAttribute::kOrigin},
                                   {DW_AT_specification, DwarfAttribute::kSpecification},
                                   {DW_AT_decl_line, DwarfAttribute::kDeclarationLine},
                                   {DW_AT_declaration, DwarfAttribute::kIsDeclaration},
                                   {DW_AT_call_file, DwarfAttribute::kCallFile},
                                   {DW_AT_call_line, DwarfAttribute::kCallLine}};

constexpr Wanted kOfScopes[] = {{DW_AT_name, DwarfAttribute::kName}};

std::span<const Wanted> WantedOf(uint64_t tag) {
  switch (tag) {
    case DW_TAG_compile_unit:
    case DW_TAG_partial_unit:
    case DW_TAG_skeleton_unit:
      return kOfUnits;
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
      return kOfFunctions;
    default:
      return IsDwarfScope(tag) ? std::span<const Wanted>(kOfScopes) : std::span<const Wanted>();
  }
}

// What of the entry with `tag` is read, if anything.
DwarfAttribute AttributeOf(uint64_t tag, uint64_t attribute) {
  if (attribute == DW_AT_sibling) return DwarfAttribute::kSibling;
  const std::span<const Wanted> wanted = WantedOf(tag);
  const auto found = std::ranges::find(wanted, attribute, &Wanted::attribute);
  return found == wanted.end() ? DwarfAttribute::kCount : found->as;
}

}  // namespace

bool IsDwarfScope(uint64_t tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_module:
    case DW_TAG_subprogram:
      return true;
    default:
      return false;
  }
}

uint64_t TakeDwarfLength(DwarfCursor& cursor, uint8_t& offset_size) {
  constexpr uint64_t k64Bit = 0xffffffff;
  const uint64_t length = cursor.Fixed<uint32_t>();
  if (length != k64Bit) return length;
  offset_size = 8;
  return cursor.Fixed<uint64_t>();
}

std::optional<DwarfUnit> DwarfUnitAt(DwarfSection& info, uint64_t offset) {
  constexpr size_t kMostOfHead = 40;
  DwarfCursor cursor(info.At(offset, kMostOfHead));
  DwarfUnit unit{.offset = offset};
  const uint64_t size = TakeDwarfLength(cursor, unit.offset_size);
  const uint64_t begin = offset + cursor.position();
  unit.version = cursor.Fixed<uint16_t>();
  if (unit.version >= 5) {
    unit.type = cursor.Fixed<uint8_t>();
    unit.address_size = cursor.Fixed<uint8_t>();
    unit.abbreviations = Sized(cursor, unit.offset_size);
    if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile) cursor.Bytes(8);
    if (HasTypeSignature(unit.type)) cursor.Bytes(8U + unit.offset_size);
  } else {
    unit.type = DW_UT_compile;
    unit.abbreviations = Sized(cursor, unit.offset_size);
    unit.address_size = cursor.Fixed<uint8_t>();
  }
  unit.entries = offset + cursor.position();
  if (!cursor.ok() || !Within(begin, size, info.size())) return std::nullopt;
  unit.end = begin + size;
  const bool is_known = unit.version >= 2 && unit.version <= 5 && unit.entries <= unit.end &&
                        (unit.address_size == 4 || unit.address_size == 8);
  if (!is_known) unit.entries = unit.end;
  return unit;
}

DwarfValue TakeDwarfValue(DwarfCursor& cursor, uint64_t form, const DwarfUnit& unit,
                          uint64_t base) {
  DwarfValue value{.kind = ClassOf(form)};
  if (form == DW_FORM_sdata) {
    value.number = static_cast<uint64_t>(cursor.Sleb());
  } else if (IsNumber(form)) {
    value.number = cursor.Uleb();
  } else if (const std::optional<uint64_t> size = FixedSizeOf(form, unit)) {
    if (*size == 3) {
      value.number = Sized3(cursor);
    } else if (*size == 0) {
      value.number = 1;
    } else if (*size == 16) {
      cursor.Bytes(*size);
    } else {
      value.number = Sized(cursor, static_cast<unsigned>(*size));
    }
  } else {
    return TakeOther(cursor, form, unit, base);
  }
  const bool is_of_unit = value.kind == DwarfClass::kEntry && form != DW_FORM_ref_addr;
  if (is_of_unit) value.number += unit.offset;
  return value;
}

Result<DwarfAbbreviations> DwarfAbbreviations::Read(const DwarfSection& section,
                                                    const DwarfUnit& unit) {
  constexpr uint64_t kFirstTry = uint64_t{16} << 10;
  constexpr uint64_t kMost = uint64_t{4} << 20;
  const uint64_t available = section.size() - std::min(section.size(), unit.abbreviations);
  std::vector<std::byte> bytes;
  // Nobody says how long a table is.
  for (uint64_t size = kFirstTry;; size *= 4) {
    RETURN_IF_ERROR(section.Read(unit.abbreviations, std::min(size, available), bytes));
    DwarfCursor cursor(bytes);
    DwarfAbbreviations all;
    Result<void> added;
    while (added && cursor.ok()) {
      const size_t begin = cursor.position();
      if (cursor.Uleb() == 0) break;
      cursor = DwarfCursor(bytes, begin);
      added = all.Add(cursor, unit);
    }
    if (!added) return std::move(added).error();
    if (cursor.ok()) return all;
    if (size >= available) return Fail(ErrorCode::kMalformed, "abbreviations without an end");
    if (size >= kMost) return Fail(ErrorCode::kExhausted, "too many abbreviations");
  }
}

Result<void> DwarfAbbreviations::Add(DwarfCursor& cursor, const DwarfUnit& unit) {
  const uint64_t code = cursor.Uleb();
  const uint64_t tag = cursor.Uleb();
  const bool is_short = tag <= std::numeric_limits<uint16_t>::max();
  Abbreviation added{.tag = is_short ? static_cast<uint16_t>(tag) : uint16_t{0},
                     .has_children = cursor.Fixed<uint8_t>() != 0,
                     .first = static_cast<uint32_t>(steps_.size())};
  while (cursor.ok()) {
    Declared declared{.attribute = cursor.Uleb(), .form = cursor.Uleb()};
    if (declared.attribute == 0 && declared.form == 0) break;
    if (declared.form == DW_FORM_implicit_const) {
      declared.constant = static_cast<uint64_t>(cursor.Sleb());
    }
    AddStep(added, declared, unit);
    if (steps_.size() > kMostOfAbbreviations)
      return Fail(ErrorCode::kExhausted, "too many abbreviations");
  }
  added.count = static_cast<uint32_t>(steps_.size() - added.first);
  if (code == by_code_.size() + 1) {
    by_code_.push_back(added);
  } else {
    others_.try_emplace(code, added);
  }
  return {};
}

void DwarfAbbreviations::AddStep(const Abbreviation& of, const Declared& declared,
                                 const DwarfUnit& unit) {
  using Kind = Step::Kind;
  const DwarfAttribute wanted = AttributeOf(of.tag, declared.attribute);
  const bool is_wanted = wanted != DwarfAttribute::kCount;
  const std::optional<uint64_t> size = FixedSizeOf(declared.form, unit);
  const bool is_short = declared.form <= std::numeric_limits<uint16_t>::max();
  Step step{.attribute = wanted,
            .form = is_short ? static_cast<uint16_t>(declared.form) : uint16_t{0}};
  if (is_wanted && declared.form == DW_FORM_implicit_const) {
    step.kind = Kind::kConstant;
    step.number = declared.constant;
  } else if (is_wanted) {
    step.kind = Kind::kTake;
  } else if (size && steps_.size() > of.first && steps_.back().kind == Kind::kSkip) {
    steps_.back().number += *size;
    return;
  } else if (size) {
    step.number = *size;
  } else {
    step.kind = IsNumber(declared.form) ? Kind::kSkipNumber : Kind::kSkipForm;
  }
  steps_.push_back(step);
}

const DwarfAbbreviations::Abbreviation* DwarfAbbreviations::Find(uint64_t code) const {
  if (code - 1 < by_code_.size()) return &by_code_[code - 1];
  const auto found = others_.find(code);
  return found == others_.end() ? nullptr : &found->second;
}

bool DwarfAbbreviations::ReadEntry(DwarfCursor& cursor, const DwarfUnit& unit, uint64_t base,
                                   DwarfEntry& entry) const {
  entry.Clear();
  entry.offset = base + cursor.position();
  const uint64_t code = cursor.Uleb();
  if (code == 0) return false;
  const Abbreviation* const found = Find(code);
  if (found == nullptr) {
    cursor.Bytes(std::numeric_limits<uint64_t>::max());  // fails
    return false;
  }
  entry.tag = found->tag;
  entry.has_children = found->has_children;
  for (const Step& step : std::span(steps_).subspan(found->first, found->count)) {
    switch (step.kind) {
      case Step::Kind::kSkip:
        cursor.Bytes(step.number);
        break;
      case Step::Kind::kSkipNumber:
        cursor.SkipLeb();
        break;
      case Step::Kind::kSkipForm:
        TakeDwarfValue(cursor, step.form, unit, base);
        break;
      case Step::Kind::kTake:
        entry.Set(step.attribute, TakeDwarfValue(cursor, step.form, unit, base));
        break;
      case Step::Kind::kConstant:
        entry.Set(step.attribute, {DwarfClass::kConstant, step.number});
        break;
    }
  }
  return cursor.ok();
}

}  // namespace pyrometer
