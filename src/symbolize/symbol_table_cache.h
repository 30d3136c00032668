// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/ids.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Symbol tables of objects, read on demand. Objects may share one, which counts once. Not
// thread-safe.
//
// Reading costs about 4 ms per megabyte, so a table stays while it is in use: for kUseWindows after
// it was last asked for. Tables not in use take at most `idle_bytes` of memory. All tables together
// take at most `max_bytes`, and `max_spilled` of the spill file. A single one that takes more is
// held beside them, until another is asked for or the window ends. Where that is too little, tables
// made with debug information go first, and ones without take their place for kWithoutWindows. A
// table dropped for that while
// in use is not read again for kUseWindows. However many and large the tables are, each is read at
// most once in that many windows.
class SymbolTableCache {
 public:
  static constexpr uint32_t kUseWindows = 6;
  static constexpr uint32_t kWithoutWindows = 60;

  struct Budget {
    size_t idle_bytes = size_t{24} << 20;
    size_t max_bytes = size_t{64} << 20;
    uint64_t max_spilled = uint64_t{384} << 20;
  };

  struct Answer {
    const SymbolTable* table = nullptr;  // null: `reason` says why; valid until the next Get
    Unresolved reason = Unresolved::kNoSymbols;
  };

  // `source` must outlive this.
  SymbolTableCache(ObjectSource& source, Budget budget) : source_(source), budget_(budget) {}

  struct Changed {
    // Whose tables may now be read again: those that were not ready in an earlier window;
    // kUseWindows after they had no room or their file was gone, which may have been out of reach
    // for a time only; and see EndWindow().
    std::vector<ObjectId> failed;
    // Who has a better table now.
    std::vector<ObjectId> better;
  };
  Changed BeginWindow(uint32_t window);

  // Why there is no table is remembered as of `window`. kNoRoom: see above.
  Answer Get(ObjectId object, const ObjectDescription& description, uint32_t window);

  // Forgets failures from before `retry_before`, so that they are tried again, and drops what
  // exceeds the budget.
  void EndWindow(uint32_t window, uint32_t retry_before);

  uint64_t tables_read() const { return tables_read_; }
  uint64_t dropped_in_use() const { return dropped_in_use_; }
  size_t bytes() const { return bytes_ + (too_large_ ? too_large_->table->bytes() : 0); }
  uint64_t spilled_bytes() const {
    return spilled_ + (too_large_ ? too_large_->table->spilled_bytes() : 0);
  }

 private:
  struct Entry {
    ObjectId object;
    std::shared_ptr<const SymbolTable> table;
    uint32_t last_used = 0;  // window
    bool has_debug_info = false;
    std::optional<uint32_t> better_from{};  // the window from which on a better one is asked for
  };
  struct Failure {
    Unresolved reason = Unresolved::kUnreadable;
    uint32_t window = 0;
  };

  bool Exceeds(size_t bytes, uint64_t spilled) const {
    return bytes > budget_.max_bytes || spilled > budget_.max_spilled;
  }
  SymbolAnswer Ask(ObjectId object, const ObjectDescription& description, uint32_t window);
  bool Improve(Entry& entry, uint32_t window);
  void HoldDebugInfo(uint32_t window);
  void HoldMaximum(uint32_t window);
  void DropTooLarge(uint32_t window);
  void NoteNoRoom(ObjectId object, uint32_t window);
  void Count(const SymbolTable& table);
  void Forget(const SymbolTable& table);
  void Keep(Entry entry);
  void Drop(std::list<Entry>::iterator entry);
  void DropLast() { Drop(std::prev(entries_.end())); }
  bool IsInUse(const Entry& entry, uint32_t window) const {
    return window - entry.last_used < kUseWindows;
  }

  ObjectSource& source_;
  Budget budget_;
  size_t bytes_ = 0;                                           // of entries_
  uint64_t spilled_ = 0;                                       // likewise
  absl::flat_hash_map<const SymbolTable*, uint32_t> sharers_;  // of entries_, by table
  uint64_t tables_read_ = 0;
  uint64_t dropped_in_use_ = 0;
  std::list<Entry> entries_;        // most recently used first
  std::optional<Entry> too_large_;  // the last one asked for, if it exceeds a maximum alone
  absl::flat_hash_map<ObjectId, std::list<Entry>::iterator> by_object_;
  absl::flat_hash_map<ObjectId, Failure> failures_;
  absl::flat_hash_map<ObjectId, uint32_t> without_;  // debug information, since that window
  std::vector<ObjectId> expired_;                    // failures, since the last BeginWindow()
};

}  // namespace pyrometer
