// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_functions.h"

#include <dwarf.h>

#include <algorithm>

#include "debuginfo/dwarf_ranges.h"

namespace pyrometer {

bool DwarfFunctions::ReadAll(const DwarfUnit& unit, std::span<const std::byte> bytes,
                             DwarfSourceFiles* files) {
  if (unit.children == 0) return true;
  unit_ = &unit;
  bytes_ = bytes;
  files_ = files;
  levels_.assign(1, Level());
  DwarfCursor in(bytes, unit.children - unit.header.offset);
  bool is_whole = true;
  while (is_whole && !levels_.empty() && !in.AtEnd()) {
    const uint64_t code = in.Uleb();
    if (code == 0) {
      levels_.pop_back();
    } else {
      is_whole = ReadEntry(code, in);
    }
    const bool is_inside = !levels_.empty() && levels_.back().has_code_around;
    if (!is_inside && !found_.empty()) {
      Flush();
      if (sink_.is_full()) return true;
    }
  }
  Flush();
  return is_whole && in.ok();
}

bool DwarfFunctions::ReadEntry(uint64_t code, DwarfCursor& in) {
  const DwarfAbbrevs& abbrevs = *unit_->abbrevs;
  const DwarfAbbrevs::Entry* const entry = abbrevs.Find(code);
  if (entry == nullptr) return false;
  const DwarfFormat& format = unit_->header.format;
  Level level = levels_.back();
  if (entry->may_have_code) {
    if (!abbrevs.Read(*entry, format, in, die_)) return false;
    level = Enter(level, die_);
    if (!entry->has_children) return true;
  } else {
    if (!abbrevs.Pass(*entry, format, in, die_)) return false;
    if (!entry->has_children) return true;
    if (!level.is_in_function && PassChildren(die_, in)) return true;
    if (entry->tag == DW_TAG_subprogram) {
      level = {.has_code_around = level.has_code_around, .is_in_function = true};
    }
  }
  levels_.push_back(level);
  return levels_.size() <= kMostNested;
}

// False if it is not told where the next entry is that does not lie in `die`.
bool DwarfFunctions::PassChildren(const DwarfDie& die, DwarfCursor& in) const {
  const DwarfValue* const sibling = die.Find(DwarfAttribute::kSibling);
  // In this unit, by the bytes from its header on; and not back, which might be for ever.
  if (sibling == nullptr || sibling->form == DW_FORM_ref_addr || sibling->number < in.position() ||
      sibling->number > bytes_.size()) {
    return false;
  }
  in = DwarfCursor(bytes_, sibling->number);
  return true;
}

// What entries that lie in `die` lie in.
DwarfFunctions::Level DwarfFunctions::Enter(const Level& outer, const DwarfDie& die) {
  const bool is_function = die.tag == DW_TAG_subprogram;
  const bool is_call = die.tag == DW_TAG_inlined_subroutine && outer.function != kNoFunction;
  if (!is_function && !is_call) return outer;
  Found found;
  if (!ReadRanges(die, found)) ++counts_.malformed;
  if (found.ranges == 0) {
    if (!is_function) return outer;
    return {.has_code_around = outer.has_code_around, .is_in_function = true};
  }
  found.function = is_function ? functions_++ : outer.function;
  found.scope.depth = is_function ? 0 : outer.depth + 1;
  found.scope.name = names_.Of(*unit_, bytes_, die);
  if (is_call) {
    if (files_ != nullptr) {
      found.scope.call_file =
          files_->PathOf(die.NumberOr(DwarfAttribute::kCallFile, ~uint64_t{0}), sink_);
    }
    found.scope.call_line = static_cast<uint32_t>(die.NumberOr(DwarfAttribute::kCallLine, 0));
  }
  ++(is_function ? counts_.functions : counts_.inlined_calls);
  found_.push_back(found);
  return {.function = found.function,
          .depth = found.scope.depth,
          .has_code_around = true,
          .is_in_function = true};
}

bool DwarfFunctions::ReadRanges(const DwarfDie& die, Found& found) {
  found.first = ranges_.size();
  if (found.first > kMostRanges) return false;
  const bool is_read = ReadDwarfRanges(file_, *unit_, die, ranges_);
  const auto first = ranges_.begin() + static_cast<ptrdiff_t>(found.first);
  const auto is_no_code = [this](const SourceSink::Range& range) {
    return !MayBeCode(segments_, ElfAddress(range.begin));
  };
  ranges_.erase(std::remove_if(first, ranges_.end(), is_no_code), ranges_.end());
  found.ranges = ranges_.size() - found.first;
  return is_read;
}

// Each function with its calls, which come in the order of the entries.
void DwarfFunctions::Flush() {
  if (functions_ > 1) std::ranges::stable_sort(found_, {}, &Found::function);
  for (Found& found : found_) {
    found.scope.ranges = std::span(ranges_).subspan(found.first, found.ranges);
    sink_.AddScope(found.scope);
  }
  found_.clear();
  ranges_.clear();
  functions_ = 0;
}

}  // namespace pyrometer
