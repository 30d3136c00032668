// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table_cache.h"

#include <utility>

#include "binary/vdso.h"
#include "symbolize/elf_symbols.h"

namespace pyrometer {
namespace {

Result<SymbolTable> VdsoSymbols() {
  ASSIGN_OR_RETURN(const ElfFile vdso, OpenVdso());
  return ReadSymbolTable(vdso);
}

}  // namespace

std::vector<ObjectId> SymbolTableCache::BeginWindow(uint32_t window) {
  std::vector<ObjectId> again;
  absl::erase_if(failures_, [&](const auto& entry) {
    const Failure& failure = entry.second;
    if (failure.reason != Unresolved::kNoRoom || window - failure.window < kUseWindows) {
      return false;
    }
    again.push_back(entry.first);
    return true;
  });
  return again;
}

SymbolTableCache::Answer SymbolTableCache::Get(ObjectId object,
                                               const ObjectDescription& description,
                                               uint32_t window) {
  if (const auto known = by_object_.find(object); known != by_object_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    entries_.front().last_used = window;
    return {.table = &entries_.front().table};
  }
  if (const auto failed = failures_.find(object); failed != failures_.end()) {
    return {.reason = failed->second.reason};
  }
  Result<SymbolTable> table = description.is_vdso ? VdsoSymbols() : source_.Symbols(object);
  if (!table) {
    const Unresolved reason = table.error().code() == ErrorCode::kNotFound
                                  ? Unresolved::kFileGone
                                  : Unresolved::kUnreadable;
    failures_[object] = {.reason = reason, .window = window};
    return {.reason = reason};
  }
  ++tables_read_;
  bytes_ += table->bytes();
  entries_.push_front({.object = object, .table = *std::move(table), .last_used = window});
  by_object_[object] = entries_.begin();
  HoldMaximum(1, window);
  return {.table = &entries_.front().table};
}

void SymbolTableCache::EndWindow(uint32_t window, uint32_t retry_before) {
  HoldMaximum(0, window);
  while (bytes_ > budget_.idle_bytes && !IsInUse(entries_.back(), window)) DropLast();
  absl::erase_if(failures_, [=](const auto& entry) {
    return entry.second.reason != Unresolved::kNoRoom && entry.second.window < retry_before;
  });
}

// Drops tables, the least recently used first, but leaves the `keep` most recently used ones.
void SymbolTableCache::HoldMaximum(size_t keep, uint32_t window) {
  while (bytes_ > budget_.max_bytes && entries_.size() > keep) {
    const Entry& last = entries_.back();
    if (IsInUse(last, window)) {
      failures_[last.object] = {.reason = Unresolved::kNoRoom, .window = window};
      ++dropped_in_use_;
    }
    DropLast();
  }
}

void SymbolTableCache::DropLast() {
  bytes_ -= entries_.back().table.bytes();
  by_object_.erase(entries_.back().object);
  entries_.pop_back();
}

}  // namespace pyrometer
