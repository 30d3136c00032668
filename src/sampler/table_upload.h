// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "pyrometer/abi/unwind.h"
#include "pyrometer/ids.h"
#include "pyrometer/unwind_table.h"
#include "sampler/kernel_rules.h"
#include "sampler/row_chunks.h"
#include "sampler/table_memory.h"
#include "sampler/table_room.h"

namespace pyrometer {

// The user-space side of the kernel's unwind tables: which objects have one, within a byte budget
// for rows. Mapping arrays hold the objects they name. An object's table is wanted from then on,
// not from its first sample. When rows exceed the budget, pages that no sample used lately are
// evicted, and loaded again when a sample needs them. Of a large table only such pages are loaded.
// When the list of pages is full, the table with the most pages that no sample used gives way to
// one that needs fewer: so no file that claims much text keeps the others out. Objects whose tables
// are of one content (UnwindTable::content) share its rows and pages.
//
// The process tracker calls Hold and Release; one other thread calls TakeWanted and Load; any may
// call Need. Loading waits for the kernel, but never makes the process tracker wait.
class TableUpload {
 public:
  struct Counters {
    uint64_t tables = 0;           // objects with a table in the kernel now
    uint64_t contents = 0;         // distinct tables of these
    uint64_t rows = 0;             // in chunks now
    uint64_t chunks = 0;           // likewise
    uint64_t rules = 0;            // distinct ones now
    uint64_t evicted_pages = 0;    // since the beginning
    uint64_t evicted_tables = 0;   // likewise, that gave way to others which need fewer pages
    uint64_t refused_objects = 0;  // that found no room in the fixed arrays
    uint64_t refused_rules = 0;
  };

  // `memory` is that of the maps; `chunks` must outlive this.
  TableUpload(const TableMemory& memory, ChunkMemory& chunks, size_t max_chunks);

  // The slot of the object's table, for mappings to refer to; kept until the matching Release().
  // Nothing if no slot is left: the object's frames are then unwound in user space.
  std::optional<uint32_t> Hold(ObjectId object, MonotonicTime now);
  void Release(ObjectId object, MonotonicTime now);

  // Held objects whose table Load() should get: those without one, those whose evicted pages are
  // needed again, and those refused before room became free. Each is returned once until Load().
  // Also releases the memory of tables that are no longer held.
  std::vector<ObjectId> TakeWanted(MonotonicTime now);

  // True if an object was held for the first time since TakeWanted().
  bool HasNew() const;

  // Ignored if the object is no longer held, or if the table differs from the one it came with
  // before. An empty table means that there are only frame pointers, or, after another, that the
  // file cannot be read now. What does not fit is left out, and tried again when a sample needs it.
  // Returns false if nobody holds the object any more.
  bool Load(ObjectId object, const UnwindTable& table, MonotonicTime now);

  // A sample needs the rule for `address`, and not only in the kernel. True if its rows are not
  // there, and this is news: Load() should get its table again, see TakeWanted().
  bool Need(ObjectId object, ElfAddress address);

  // By slot, whether samples have been unwound with that table, by the kernel or not; also true of
  // those without rows, of which nobody knows.
  std::vector<bool> UsedSlots() const;
  // True the first time since the object is held.
  bool NoteUsed(ObjectId object);

  Counters counters() const;

  // Tables of more rows (4 MiB) are loaded by the page, as samples need them: of the largest
  // programs a few percent are in use.
  static constexpr size_t kMostAtOnce = size_t{1} << 20;

 private:
  enum class State : uint8_t { kAbsent, kLoaded, kEmpty, kRefused };
  // A table in the kernel, of one or more objects.
  struct Table {
    uint64_t content = 0;  // 0: shared with no other object
    uint32_t first_page = 0;
    std::vector<RowChunks::Range> ranges;  // by page; count 0: none in the kernel
    std::vector<uint16_t> rules;           // held in rules_
    absl::flat_hash_set<ObjectId> users;
    ObjectId requested;      // the user for which TakeWanted() asked, until Load(); 0: none
    bool announced = false;  // by Need(), since TakeWanted()
    bool is_loading = false;
  };
  struct Object {
    uint32_t slot = 0;
    uint32_t holders = 0;
    State state = State::kAbsent;
    bool requested = false;          // by TakeWanted(), and not yet loaded
    bool replaced = false;           // the file has a different table by now
    bool used = false;               // NoteUsed() was told of it
    uint32_t refused_pages = 0;      // how many there was no room for, if kRefused
    std::optional<uint64_t> digest;  // of its table, once there was one, whether or not it fitted
    std::shared_ptr<Table> table;    // null unless kLoaded
  };
  // What Load() has to do.
  struct Missing {
    std::shared_ptr<Table> table;
    std::vector<uint32_t> pages;
  };

  std::optional<Missing> HoldToLoad(ObjectId id, const UnwindTable& table, MonotonicTime now);
  bool Begin(ObjectId id, Object& object, const UnwindTable& table, MonotonicTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeRefused(std::vector<ObjectId>& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t IdlePages(const Table& table) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoomFor(uint32_t pages, MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveWay(Table& table, MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Table> Find(const UnwindTable& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Table> Enter(const UnwindTable& table, MonotonicTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t LoadPage(Table& into, const UnwindTable& table, uint32_t page, MonotonicTime now);
  std::vector<pyro_unwind_row> KernelRows(const Table& into, std::span<const pyro_unwind_row> own);
  bool IsMissed(const Table& table) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUsed(const Table& table) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ObjectId UserOf(const Table& table) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict(size_t rows, MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t EvictFrom(Table& table, MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(ObjectId id, Object& object, MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unload(Table& table, MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reuse(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TableMemory memory_;
  mutable absl::Mutex mutex_;
  RowChunks chunks_;
  KernelRules rules_ ABSL_GUARDED_BY(mutex_);
  TableRoom room_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<ObjectId, Object> objects_ ABSL_GUARDED_BY(mutex_);
  // By UnwindTable::content, where that is known.
  absl::flat_hash_map<uint64_t, std::shared_ptr<Table>> contents_ ABSL_GUARDED_BY(mutex_);
  // All of them, in the order in which they lose pages.
  std::deque<std::shared_ptr<Table>> clock_ ABSL_GUARDED_BY(mutex_);
  bool has_new_ ABSL_GUARDED_BY(mutex_) = false;
  bool pages_came_free_ ABSL_GUARDED_BY(mutex_) = false;  // since TakeWanted()
  bool lacks_rows_ ABSL_GUARDED_BY(mutex_) = false;       // some did not get in, or were evicted
  uint64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t evicted_tables_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pyrometer
