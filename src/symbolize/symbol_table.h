// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/spill_file.h"
#include "base/spilled_bytes.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Of code in an object: from `begin` to before `end`.
struct CodeRange {
  ElfAddress begin;
  ElfAddress end;
};

// A function's range. `name` is raw: mangled, with whatever bytes the file has; "" if the file
// tells only where the function lies. A stub that jumps to a function has its name and kPltSuffix.
struct Symbol {
  std::string name;
  ElfAddress start;
  uint64_t size = 0;
};

// Where a table is kept: what has more than 64 KiB in the spill file, as far as that has room.
struct SymbolTableOptions {
  std::shared_ptr<SpillFile> spill{};           // null: has no room
  uint64_t most_spilled = uint64_t{256} << 20;  // bytes
  size_t most_in_memory = size_t{32} << 20;     // bytes; without room in the spill file
};

// Where the bytes of a table are kept that is being made.
std::shared_ptr<SpilledBytes> RoomFor(const SymbolTableOptions& options);

// What there is to a table besides its bytes: the names, each ending with a NUL, then the entries.
struct SymbolTableShape {
  uint64_t base = 0;        // what addresses are relative to
  uint64_t size = 0;        // entries
  uint64_t entries_at = 0;  // offset of the first
  bool has_names = false;
  std::vector<uint32_t> page_starts;  // start of every SymbolTable::kPage-th entry
};

// The functions of one object by address. An immutable value made by SymbolTableBuilder, of 16
// bytes per function plus the names. Any number of threads may use it.
//
// Neither shape nor bytes are believed, which a sandboxed process has made of a hostile file: what
// contradicts itself has wrong names or none, and costs no more than any other.
class SymbolTable {
 public:
  static constexpr size_t kPage = 256;       // entries, read at once
  static constexpr size_t kMaxNesting = 32;  // of functions in functions
  static constexpr uint64_t kMostEntries = uint64_t{8} << 20;

  SymbolTable() = default;

  // Errors: kMalformed if the shape does not fit the bytes.
  static Result<SymbolTable> From(SymbolTableShape shape,
                                  std::shared_ptr<const SpilledBytes> bytes);

  // The function that `address` lies in, the innermost if there are several. Sizes are honoured:
  // between functions there is nothing. Nothing, too, if the spill file cannot be read. Costs up to
  // three reads of that file, 1 to 2 µs, more where functions lie in functions or have several
  // names.
  std::optional<Symbol> Find(ElfAddress address) const;

  bool empty() const { return shape_.size == 0; }
  // Whether any of its functions has a name of its own.
  bool has_names() const { return shape_.has_names; }
  // Entries: functions, and further names of these.
  size_t size() const { return shape_.size; }

  // In memory, and in the spill file.
  size_t bytes() const {
    return shape_.page_starts.capacity() * sizeof(uint32_t) + (stored_ ? stored_->in_memory() : 0);
  }
  uint64_t spilled_bytes() const { return stored_ ? stored_->spilled() : 0; }

 private:
  friend class SymbolTableBuilder;

  static constexpr uint32_t kNone = ~uint32_t{0};
  // In the place of a name's offset: there is none, or it is this one.
  enum Known : uint32_t {
    kFirstKnown = kNone - 4,
    kPlt = kFirstKnown,
    kInit,
    kFini,
    kStart,
    kUnnamed
  };
  // In the place of an enclosing entry: it is a stub of the procedure linkage table, called after
  // the function whose name is its name, or that begins where its name says.
  static constexpr uint32_t kStub = kNone - 1;
  static constexpr uint32_t kIndirectStub = kNone - 2;
  static constexpr size_t kMostNames = 64;  // of one function, among which the best is chosen

  struct Entry {
    uint32_t start = 0;  // relative to base_
    uint32_t size = 0;
    uint32_t name = 0;           // offset of its first byte; it ends with a NUL
    uint32_t enclosing = kNone;  // the next larger entry that contains this one's start
  };

  std::vector<Entry> Entries(size_t first, size_t count) const;
  std::optional<uint32_t> LastAtOrBelow(uint32_t offset) const;
  std::string NameOf(uint32_t index, const Entry& entry) const;
  std::string NameOfTarget(const Entry& stub) const;
  std::string BestName(uint32_t index, const Entry& entry) const;
  std::string NameAt(uint32_t offset) const;

  SymbolTableShape shape_;
  // The names, then the entries: by start; of equal starts, the smallest last; those that differ in
  // their names only, together.
  std::shared_ptr<const SpilledBytes> stored_;
};

}  // namespace pyrometer
