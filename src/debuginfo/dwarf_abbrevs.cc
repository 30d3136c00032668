// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_abbrevs.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace pyrometer {
namespace {

// Entries whose attributes matter: units, functions and calls inlined into them.
bool IsWanted(uint64_t tag) {
  switch (tag) {
    case DW_TAG_compile_unit:
    case DW_TAG_partial_unit:
    case DW_TAG_skeleton_unit:
    case DW_TAG_type_unit:
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_entry_point:
      return true;
    default:
      return false;
  }
}

// gcc tells where the entry after a type is, and puts no code into types that are in no function
// (closures are).
bool IsType(uint64_t tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
         tag == DW_TAG_enumeration_type;
}

DwarfAttribute AttributeOf(uint64_t tag, uint64_t attribute) {
  if (attribute == DW_AT_sibling && IsType(tag)) return DwarfAttribute::kSibling;
  if (!IsWanted(tag)) return DwarfAttribute::kNone;
  switch (attribute) {
    case DW_AT_name:
      return DwarfAttribute::kName;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
      return DwarfAttribute::kLinkageName;
    case DW_AT_low_pc:
      return DwarfAttribute::kLowPc;
    case DW_AT_high_pc:
      return DwarfAttribute::kHighPc;
    case DW_AT_ranges:
      return DwarfAttribute::kRanges;
    case DW_AT_abstract_origin:
      return DwarfAttribute::kOrigin;
    case DW_AT_specification:
      return DwarfAttribute::kSpecification;
    case DW_AT_call_file:
      return DwarfAttribute::kCallFile;
    case DW_AT_call_line:
      return DwarfAttribute::kCallLine;
    case DW_AT_language:
      return DwarfAttribute::kLanguage;
    case DW_AT_comp_dir:
      return DwarfAttribute::kCompDir;
    case DW_AT_stmt_list:
      return DwarfAttribute::kStmtList;
    case DW_AT_str_offsets_base:
      return DwarfAttribute::kStrOffsetsBase;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
      return DwarfAttribute::kAddrBase;
    case DW_AT_rnglists_base:
      return DwarfAttribute::kRngListsBase;
    case DW_AT_GNU_ranges_base:
      return DwarfAttribute::kRangesBase;
    case DW_AT_GNU_dwo_id:
      return DwarfAttribute::kDwoId;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
      return DwarfAttribute::kDwoName;
    default:
      return DwarfAttribute::kNone;
  }
}

}  // namespace

Result<DwarfAbbrevs> DwarfAbbrevs::Parse(std::span<const std::byte> bytes,
                                         const DwarfFormat& format) {
  DwarfAbbrevs table;
  DwarfCursor in(bytes);
  std::vector<Step> attributes;
  while (const uint64_t code = in.Uleb()) {
    Entry entry;
    attributes.clear();
    if (!table.ParseEntry(format, in, attributes, entry)) {
      if (!in.ok()) break;
      return Fail(ErrorCode::kMalformed, "a malformed abbreviation");
    }
    if (table.steps_.size() > kMostSteps ||
        table.dense_.size() + table.sparse_.size() >= kMostEntries) {
      return Fail(ErrorCode::kMalformed, "too many abbreviations");
    }
    if (code == table.dense_.size() + 1) {
      table.dense_.push_back(entry);
    } else {
      table.sparse_.emplace(code, entry);
    }
  }
  if (!in.ok()) return Fail(ErrorCode::kExhausted, "a table of abbreviations without an end");
  return table;
}

bool DwarfAbbrevs::ParseEntry(const DwarfFormat& format, DwarfCursor& in,
                              std::vector<Step>& attributes, Entry& entry) {
  const uint64_t tag = in.Uleb();
  if (tag > std::numeric_limits<uint16_t>::max()) return false;
  entry.tag = static_cast<uint16_t>(tag);
  entry.has_children = in.Fixed<uint8_t>() != 0;
  while (attributes.size() < kMostAttributes) {
    const uint64_t attribute = in.Uleb();
    const uint64_t form = in.Uleb();
    if (!in.ok() || form > std::numeric_limits<uint16_t>::max()) return false;
    if (attribute == 0 && form == 0) {
      const bool is_code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
      entry.may_have_code = is_code && std::ranges::any_of(attributes, [](const Step& step) {
                              return step.attribute == DwarfAttribute::kLowPc ||
                                     step.attribute == DwarfAttribute::kRanges;
                            });
      entry.read = AddSteps(attributes, true);
      entry.pass = AddSteps(attributes, false);
      return true;
    }
    if (form == 0) return false;
    attributes.push_back({.attribute = AttributeOf(tag, attribute),
                          .form = static_cast<uint16_t>(form),
                          .size = SizeOfForm(static_cast<uint16_t>(form), format).value_or(kVaries),
                          .constant = form == DW_FORM_implicit_const ? in.Sleb() : 0});
  }
  return false;
}

// Those that are not needed are passed over, several at once if their sizes are known.
DwarfAbbrevs::Steps DwarfAbbrevs::AddSteps(std::span<const Step> attributes, bool with_values) {
  const size_t first = steps_.size();
  for (const Step& step : attributes) {
    const bool is_needed = step.attribute == DwarfAttribute::kSibling ||
                           (with_values && step.attribute != DwarfAttribute::kNone);
    if (is_needed || (step.size == kVaries && step.form != DW_FORM_implicit_const)) {
      steps_.push_back(step);
      if (!is_needed) steps_.back().attribute = DwarfAttribute::kNone;
    } else if (step.size != kVaries && steps_.size() > first && steps_.back().form == 0) {
      steps_.back().size += step.size;
    } else if (step.size != kVaries) {
      steps_.push_back({.attribute = DwarfAttribute::kNone, .form = 0, .size = step.size});
    }
  }
  return {.first = static_cast<uint32_t>(first),
          .count = static_cast<uint32_t>(steps_.size() - first)};
}

bool DwarfAbbrevs::Follow(const Entry& entry, const Steps& steps, const DwarfFormat& format,
                          DwarfCursor& in, DwarfDie& out) const {
  out.tag = entry.tag;
  out.has_children = entry.has_children;
  out.present_ = 0;
  for (const Step& step : std::span(steps_).subspan(steps.first, steps.count)) {
    if (step.form == 0) {
      in.Bytes(step.size);
      continue;
    }
    const auto slot = static_cast<size_t>(step.attribute);
    DwarfValue& value = out.values_[slot];
    if (step.size != kVaries) {
      value = {.form = step.form, .number = ReadNumber(step.size, in)};
    } else if (!ReadForm(step.form, step.constant, format, in, value)) {
      return false;
    }
    out.present_ |= uint32_t{1} << slot;
  }
  return in.ok();
}

}  // namespace pyrometer
