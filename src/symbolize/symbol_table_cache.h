// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/ids.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Symbol tables of objects, read when asked for, within a budget of bytes: the least recently used
// ones are dropped and read again when they are needed again. Not thread-safe.
class SymbolTableCache {
 public:
  struct Answer {
    const SymbolTable* table = nullptr;  // null: `reason` says why; valid until the next Get
    Unresolved reason = Unresolved::kNoSymbols;
  };

  // `source` outlives this.
  SymbolTableCache(ObjectSource& source, size_t budget_bytes)
      : source_(source), budget_(budget_bytes) {}

  // A single table may exceed the budget while it is the current one. That a table could not be
  // read is remembered as of `window`.
  Answer Get(ObjectId object, const ObjectDescription& description, uint32_t window);

  // Lets failures from before `window` be tried again, and drops the current table if it exceeds
  // the budget.
  void EndWindow(uint32_t retry_before);

  uint64_t tables_read() const { return tables_read_; }
  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    ObjectId object;
    SymbolTable table;
  };
  struct Failure {
    Unresolved reason = Unresolved::kUnreadable;
    uint32_t window = 0;
  };

  void Shrink(size_t keep);

  ObjectSource& source_;
  size_t budget_;
  size_t bytes_ = 0;
  uint64_t tables_read_ = 0;
  std::list<Entry> entries_;  // the most recently used first
  absl::flat_hash_map<ObjectId, std::list<Entry>::iterator> by_object_;
  absl::flat_hash_map<ObjectId, Failure> failures_;
};

}  // namespace pyrometer
