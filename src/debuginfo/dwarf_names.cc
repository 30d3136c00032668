// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_names.h"

#include <dwarf.h>

#include <string_view>

namespace pyrometer {
namespace {

// From a copy to what it is a copy of, to its declaration: three at most are usual.
constexpr int kMostSteps = 12;

}  // namespace

DwarfNames::DwarfNames(DwarfFile& file, SourceSink& sink) : file_(file), sink_(sink) {
  if (file.others().supplement != nullptr) {
    supplement_ = std::make_unique<DwarfNames>(*file.others().supplement, sink);
  }
}

SourceSink::Text DwarfNames::Of(const DwarfUnit& unit, std::span<const std::byte> bytes,
                                const DwarfDie& die) {
  return NameOf({unit, bytes}, die, 0).text;
}

DwarfNames::Name DwarfNames::NameOf(const Place& place, const DwarfDie& die, int depth) {
  const auto text = [&](const DwarfValue& value) {
    const std::string_view name = file_.String(place.unit, value);
    return name.empty() ? SourceSink::kUnknown : sink_.AddName(name);
  };
  if (const DwarfValue* linkage = die.Find(DwarfAttribute::kLinkageName)) {
    const SourceSink::Text name = text(*linkage);
    if (name != SourceSink::kUnknown) return {.text = name, .is_of_symbol = true};
  }
  // What is referred to may overwrite the bytes that this entry's name is in.
  const DwarfValue* const own = die.Find(DwarfAttribute::kName);
  const Name in_source = {.text = own == nullptr ? SourceSink::kUnknown : text(*own)};
  for (const auto reference : {DwarfAttribute::kOrigin, DwarfAttribute::kSpecification}) {
    const DwarfValue* const value = die.Find(reference);
    if (value == nullptr || depth == kMostSteps) continue;
    const Name other = NameAt(place, *value, depth + 1);
    if (other.is_of_symbol || in_source.text == SourceSink::kUnknown) return other;
  }
  return in_source;
}

DwarfNames::Name DwarfNames::NameAt(const Place& place, const DwarfValue& reference, int depth) {
  switch (reference.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
      return NameIn(place, place.unit.header.offset + reference.number, depth);
    case DW_FORM_ref_addr:
      return NameIn(place, reference.number, depth);
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
    case DW_FORM_GNU_ref_alt:
      return supplement_ == nullptr ? Name() : supplement_->OfSupplement(reference.number, depth);
    default:
      return {};
  }
}

// Of the entry at `offset`, in the unit at `place` or another.
DwarfNames::Name DwarfNames::NameIn(const Place& place, uint64_t offset, int depth) {
  if (const auto known = known_.find(offset); known != known_.end()) return known->second;
  const DwarfUnitHeader& header = place.unit.header;
  Name name;
  if (offset >= header.first && offset < header.end) {
    name = Read(place, offset, depth);
  } else if (const DwarfUnit* const unit = file_.UnitAt(offset)) {
    const DwarfUnit copy = *unit;  // another may be opened on the way
    name = Read({copy, {}}, offset, depth);
  }
  known_[offset] = name;
  return name;
}

DwarfNames::Name DwarfNames::OfSupplement(uint64_t offset, int depth) {
  static const DwarfUnit kNone;
  return NameIn({kNone, {}}, offset, depth);
}

DwarfNames::Name DwarfNames::Read(const Place& place, uint64_t offset, int depth) {
  DwarfDie die;
  if (place.bytes.empty()) {
    if (!file_.ReadEntry(place.unit, offset, die)) return {};
  } else {
    DwarfCursor in(place.bytes, offset - place.unit.header.offset);
    const DwarfAbbrevs::Entry* const entry = place.unit.abbrevs->Find(in.Uleb());
    if (entry == nullptr || !place.unit.abbrevs->Read(*entry, place.unit.header.format, in, die)) {
      return {};
    }
  }
  return NameOf(place, die, depth);
}

}  // namespace pyrometer
