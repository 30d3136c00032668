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
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->better_from && *entry->better_from <= window) {
      changed.better.push_back(entry->object);
      Drop(entry);
    }
    entry = next;
  }
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
  SymbolAnswer answer = description.is_vdso ? VdsoSymbols() : source_.Symbols(object);
  if (answer.table == nullptr) {
    failures_[object] = {.reason = answer.reason, .window = window};
    return {.reason = answer.reason};
  }
  ++tables_read_;
  Entry entry{.object = object, .table = std::move(answer.table), .last_used = window};
  if (answer.better_after > 0) entry.better_from = window + answer.better_after;
  if (Exceeds(entry.table->bytes(), entry.table->spilled_bytes())) {
    too_large_ = std::move(entry);
    return {.table = too_large_->table.get()};
  }
  Keep(std::move(entry));
  HoldMaximum(window);
  return {.table = entries_.front().table.get()};
}

void SymbolTableCache::Keep(Entry entry) {
  if (sharers_[entry.table.get()]++ == 0) {
    bytes_ += entry.table->bytes();
    spilled_ += entry.table->spilled_bytes();
  }
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
  const auto shared = sharers_.find(entry->table.get());
  if (--shared->second == 0) {
    bytes_ -= shared->first->bytes();
    spilled_ -= shared->first->spilled_bytes();
    sharers_.erase(shared);
  }
  by_object_.erase(entry->object);
  entries_.erase(entry);
}

}  // namespace pyrometer
