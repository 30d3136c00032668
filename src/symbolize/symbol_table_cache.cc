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

SymbolTableCache::Answer SymbolTableCache::Get(ObjectId object,
                                               const ObjectDescription& description,
                                               uint32_t window) {
  if (const auto known = by_object_.find(object); known != by_object_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
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
  entries_.push_front({.object = object, .table = *std::move(table)});
  by_object_[object] = entries_.begin();
  Shrink(1);
  return {.table = &entries_.front().table};
}

void SymbolTableCache::EndWindow(uint32_t retry_before) {
  Shrink(0);
  absl::erase_if(failures_,
                 [=](const auto& failure) { return failure.second.window < retry_before; });
}

// Drops tables until the budget is met, but leaves the `keep` most recently used ones.
void SymbolTableCache::Shrink(size_t keep) {
  while (bytes_ > budget_ && entries_.size() > keep) {
    bytes_ -= entries_.back().table.bytes();
    by_object_.erase(entries_.back().object);
    entries_.pop_back();
  }
}

}  // namespace pyrometer
