// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table_cache.h"

#include <utility>

#include "binary/vdso.h"
#include "symbolize/elf_symbols.h"

namespace pyrometer {
namespace {

SymbolAnswer VdsoSymbols() {
  const Result<ElfFile> vdso = OpenVdso();
  if (!vdso) return {};
  Result<SymbolTable> table = ReadSymbolTable(*vdso);
  if (!table) return {};
  return {.table = std::make_shared<const SymbolTable>(*std::move(table))};
}

// After so many windows symbols may be read again that could not be.
uint32_t PauseOf(Unresolved reason) {
  return reason == Unresolved::kNotReady ? 1 : SymbolTableCache::kUseWindows;
}

}  // namespace

SymbolTableCache::Changed SymbolTableCache::BeginWindow(uint32_t window) {
  Changed changed{.failed = std::exchange(expired_, {}), .better = {}};
  absl::erase_if(failures_, [&](const auto& entry) {
    const Failure& failure = entry.second;
    if (failure.reason == Unresolved::kUnreadable ||
        window - failure.window < PauseOf(failure.reason)) {
      return false;
    }
    changed.failed.push_back(entry.first);
    return true;
  });
  absl::erase_if(without_, [&](const auto& entry) {
    if (window - entry.second < kWithoutWindows) return false;
    const auto known = by_object_.find(entry.first);
    if (known != by_object_.end()) known->second->better_from = window;
    return true;
  });
  for (Entry& entry : entries_) {
    if (!entry.better_from || *entry.better_from > window) continue;
    if (Improve(entry, window)) changed.better.push_back(entry.object);
  }
  HoldDebugInfo(window);
  return changed;
}

SymbolTableCache::Answer SymbolTableCache::Get(ObjectId object,
                                               const ObjectDescription& description,
                                               uint32_t window) {
  if (too_large_ && too_large_->object == object) return {.table = too_large_->table.get()};
  DropTooLarge(window);
  if (const auto known = by_object_.find(object); known != by_object_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    entries_.front().last_used = window;
    return {.table = entries_.front().table.get()};
  }
  if (const auto failed = failures_.find(object); failed != failures_.end()) {
    return {.reason = failed->second.reason};
  }
  SymbolAnswer answer = Ask(object, description, window);
  if (answer.table == nullptr) {
    failures_[object] = {.reason = answer.reason, .window = window};
    return {.reason = answer.reason};
  }
  ++tables_read_;
  Entry entry{.object = object,
              .table = std::move(answer.table),
              .last_used = window,
              .has_debug_info = answer.has_debug_info};
  if (answer.better_after > 0) entry.better_from = window + answer.better_after;
  if (Exceeds(entry.table->bytes(), entry.table->spilled_bytes())) {
    too_large_ = std::move(entry);
    return {.table = too_large_->table.get()};
  }
  Keep(std::move(entry));
  HoldDebugInfo(window);
  // It may have been the one that went.
  if (!by_object_.contains(object)) return Get(object, description, window);
  HoldMaximum(window);
  return {.table = entries_.front().table.get()};
}

// A table with debug information that exceeds a maximum alone is none.
SymbolAnswer SymbolTableCache::Ask(ObjectId object, const ObjectDescription& description,
                                   uint32_t window) {
  using DebugInfo = ObjectSource::DebugInfo;
  if (description.is_vdso) return VdsoSymbols();
  if (without_.contains(object)) return source_.Symbols(object, DebugInfo::kLeftOut);
  SymbolAnswer answer = source_.Symbols(object, DebugInfo::kIfThere);
  const bool is_too_large = answer.has_debug_info && answer.table != nullptr &&
                            Exceeds(answer.table->bytes(), answer.table->spilled_bytes());
  if (!is_too_large) return answer;
  without_[object] = window;
  return source_.Symbols(object, DebugInfo::kLeftOut);
}

void SymbolTableCache::Count(const SymbolTable& table) {
  if (sharers_[&table]++ > 0) return;
  bytes_ += table.bytes();
  spilled_ += table.spilled_bytes();
}

void SymbolTableCache::Forget(const SymbolTable& table) {
  const auto shared = sharers_.find(&table);
  if (--shared->second > 0) return;
  bytes_ -= table.bytes();
  spilled_ -= table.spilled_bytes();
  sharers_.erase(shared);
}

void SymbolTableCache::Keep(Entry entry) {
  Count(*entry.table);
  entries_.push_front(std::move(entry));
  by_object_[entries_.front().object] = entries_.begin();
}

void SymbolTableCache::EndWindow(uint32_t window, uint32_t retry_before) {
  DropTooLarge(window);
  while (bytes_ > budget_.idle_bytes && !IsInUse(entries_.back(), window)) DropLast();
  absl::erase_if(failures_, [&](const auto& entry) {
    const Failure& failure = entry.second;
    if (failure.reason == Unresolved::kNoRoom || failure.window >= retry_before) return false;
    expired_.push_back(entry.first);
    return true;
  });
}

// Asks for a better table; the one that is there stays while there is none.
bool SymbolTableCache::Improve(Entry& entry, uint32_t window) {
  SymbolAnswer answer = Ask(entry.object, {}, window);
  const bool is_better = answer.table != nullptr && answer.table != entry.table;
  const uint32_t later = answer.table == nullptr ? 1 : answer.better_after;
  entry.better_from = later > 0 ? std::optional(window + later) : std::nullopt;
  if (!is_better) return false;
  Forget(*entry.table);
  entry.table = std::move(answer.table);
  entry.has_debug_info = answer.has_debug_info;
  Count(*entry.table);
  return true;
}

// Drops tables with debug information, the least recently used first, until there is room.
void SymbolTableCache::HoldDebugInfo(uint32_t window) {
  for (auto entry = entries_.end(); Exceeds(bytes_, spilled_) && entry != entries_.begin();) {
    const auto last = --entry;
    if (!last->has_debug_info) continue;
    without_[last->object] = window;
    entry = std::next(last);
    Drop(last);
  }
}

// Drops tables, the least recently used first. The one used last has room alone.
void SymbolTableCache::HoldMaximum(uint32_t window) {
  while (Exceeds(bytes_, spilled_)) {
    const Entry& last = entries_.back();
    if (IsInUse(last, window)) NoteNoRoom(last.object, window);
    DropLast();
  }
}

void SymbolTableCache::DropTooLarge(uint32_t window) {
  if (!too_large_) return;
  NoteNoRoom(too_large_->object, window);
  too_large_.reset();
}

void SymbolTableCache::NoteNoRoom(ObjectId object, uint32_t window) {
  failures_[object] = {.reason = Unresolved::kNoRoom, .window = window};
  ++dropped_in_use_;
}

void SymbolTableCache::Drop(std::list<Entry>::iterator entry) {
  Forget(*entry->table);
  by_object_.erase(entry->object);
  entries_.erase(entry);
}

}  // namespace pyrometer
