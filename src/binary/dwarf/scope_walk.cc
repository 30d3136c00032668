// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf/scope_walk.h"

#include <utility>

namespace pyrometer {
namespace {

constexpr size_t kMostWalkedDepth = 4096;

}  // namespace

std::optional<DwarfScopeWalk::Found> DwarfScopeWalk::Find(uint64_t entry) {
  std::optional<DwarfEntry> read;
  if (!GoTo(entry) || !units_.ReadEntryAt(entry, *context_, read) || !read) return std::nullopt;
  Found found{.name = units_.NameOf(read->Get(DwarfAttribute::kName), *context_)};
  for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
    if (*scope) found.around.push_back(**scope);
  }
  return found;
}

bool DwarfScopeWalk::GoTo(uint64_t entry) {
  const bool is_in_unit =
      context_ != nullptr && entry >= context_->unit.entries && entry < context_->unit.end;
  const bool is_passed = entry < next_ && entry <= last_;
  if (!is_in_unit || is_passed) {
    context_ = units_.ContextOf(entry);
    if (context_ == nullptr) return false;
    open_.clear();
    last_ = 0;
    next_ = context_->unit.entries;
  }
  while (next_ < entry) {
    if (!Step(entry)) return false;
  }
  return next_ == entry;
}

// From one entry to the next, or past those below it, among which `towards` is not.
bool DwarfScopeWalk::Step(uint64_t towards) {
  std::optional<DwarfEntry> read;
  const std::optional<uint64_t> behind = units_.ReadEntryAt(next_, *context_, read);
  if (!behind) return false;
  last_ = std::exchange(next_, *behind);
  if (!read) {
    if (!open_.empty()) open_.pop_back();
    return true;
  }
  if (!read->has_children) return true;
  const DwarfValue sibling = read->Get(DwarfAttribute::kSibling);
  if (sibling.kind == DwarfClass::kEntry && sibling.number >= next_ && sibling.number <= towards) {
    last_ = next_ = sibling.number;
    return true;
  }
  if (open_.size() == kMostWalkedDepth) return false;
  open_.push_back(units_.ScopeOf(*read, *context_));
  return true;
}

}  // namespace pyrometer
