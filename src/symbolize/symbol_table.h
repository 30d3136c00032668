// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

// A function's range. `name` is raw: mangled, with whatever bytes the file has, and with kStubMark
// if it is a stub that calls the function of that name; "" if the file tells only where the
// function lies.
struct Symbol {
  std::string name;
  ElfAddress start;
  uint64_t size = 0;
};

// Where code comes from in the source.
struct SourceLine {
  std::string function;     // raw, of one that is inlined; "": the one whose symbol it is
  std::string file;         // "": not known
  uint32_t line = 0;        // 0: not known
  uint32_t start_line = 0;  // where the function begins; 0: not known

  bool operator==(const SourceLine&) const = default;
};

// Takes the bytes of a table while it is being made, in another process than that of its users.
class SymbolByteSink {
 public:
  virtual ~SymbolByteSink() = default;
  // The next bytes. False if there is no room.
  virtual bool Put(std::span<const std::byte> bytes) = 0;
};

// What a table has, and where it is kept: what has more than 64 KiB in the spill file, as far as
// that has room.
struct SymbolTableOptions {
  // Whether debug information is read. It may be a thousand times as large as the symbols.
  bool with_debug_info = false;
  std::shared_ptr<SpillFile> spill{};           // null: has no room
  uint64_t most_spilled = uint64_t{256} << 20;  // bytes
  size_t most_in_memory = size_t{32} << 20;     // bytes; without room in the spill file
  SymbolByteSink* bytes = nullptr;              // gets all instead, and nothing can be found

  // What a table of these keeps its bytes in.
  std::shared_ptr<SpilledBytes> Storage() const;
};

// The functions of one object by address, and their source as far as the file tells. An immutable
// value made by SymbolTableBuilder, of 16 bytes per function plus the names, and 12 plus a record
// (see source_record.h) per function whose source is known. Any number of threads may use it. Its
// bytes are, whoever keeps them:
//   names and records, anywhere; a name ends with a NUL
//   at entries_at: an Entry for each function, and for each further name of one
//   a Source for each function whose source is known
//   where each text that records number begins, 32 bits
class SymbolTable {
 public:
  // Where what is in its bytes.
  struct Layout {
    uint64_t base = 0;
    uint64_t size = 0;        // entries
    uint64_t entries_at = 0;  // where they begin, behind the names
    uint64_t sources = 0;     // functions whose source is known
    uint64_t texts = 0;       // that these name by number
    bool has_names = false;
    uint64_t unread_debug_info = 0;
  };

  SymbolTable() = default;

  // The table that was made elsewhere with this layout, and `bytes`. Whatever these are, no
  // question to it does harm. Errors: kMalformed if they are not those of a table.
  static Result<SymbolTable> From(const Layout& layout, std::shared_ptr<const SpilledBytes> bytes);

  Layout layout() const {
    return {.base = base_,
            .size = size_,
            .entries_at = entries_at_,
            .sources = sources_,
            .texts = texts_,
            .has_names = has_names_,
            .unread_debug_info = unread_debug_info_};
  }

  // The function that `address` lies in, the innermost if there are several. Sizes are honoured:
  // between functions there is nothing. Nothing, too, if the spill file cannot be read. Costs up to
  // three reads of that file, 1 to 2 µs, more where functions lie in functions or have several
  // names.
  std::optional<Symbol> Find(ElfAddress address) const;

  // The functions that the code at `address` is of, innermost first: all but the last one are
  // inlined. At most 65, with texts of at most 4096 bytes. Empty if that is not known. Costs a read
  // of the spill file for the index, one or two for the record, which is read as far as to the
  // address, and up to three for each text: 1 to 10 µs. A function whose name is not kept is
  // "[unknown]".
  std::vector<SourceLine> LinesAt(ElfAddress address) const;

  bool empty() const { return size_ == 0; }
  // Whether any of its functions has a name of its own, which a stub has not.
  bool has_names() const { return has_names_; }
  // Bytes of debug information that would tell more of the source.
  uint64_t unread_debug_info() const { return unread_debug_info_; }
  // Entries: functions, and further names of these.
  size_t size() const { return size_; }

  // In memory, and in the spill file.
  size_t bytes() const {
    return (page_starts_.capacity() + source_starts_.capacity()) * sizeof(uint32_t) +
           (stored_ ? stored_->in_memory() : 0);
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
  static constexpr size_t kPage = 256;        // entries, read at once
  static constexpr size_t kMostNames = 64;    // of one function, among which the best is chosen
  static constexpr size_t kMostNesting = 32;  // of functions in functions

  struct Entry {
    uint32_t start = 0;  // relative to base_
    uint32_t size = 0;
    uint32_t name = 0;           // offset of its first byte; it ends with a NUL
    uint32_t enclosing = kNone;  // the next larger entry that contains this one's start
  };

  struct Source {
    uint32_t start = 0;  // relative to base_
    uint32_t size = 0;
    uint32_t record = 0;  // offset of its first byte
  };

  static constexpr uint64_t kMostSources = uint64_t{4} << 20;
  static constexpr size_t kMostText = 4096;  // bytes; longer ones are cut

  uint64_t sources_at() const { return entries_at_ + size_ * sizeof(Entry); }
  uint64_t texts_at() const { return sources_at() + sources_ * sizeof(Source); }
  Result<void> ReadPageStarts();
  std::optional<Source> SourceAt(uint32_t offset) const;
  std::vector<std::byte> RecordOf(const Source& source) const;
  std::string Text(uint32_t number) const;
  std::string StringAt(uint64_t offset, size_t most) const;
  std::vector<Source> Sources(size_t first, size_t count) const;
  std::vector<Entry> Entries(size_t first, size_t count) const;
  std::optional<uint32_t> LastAtOrBelow(uint32_t offset) const;
  std::string BestName(uint32_t index, const Entry& entry) const;
  std::string NameAt(uint32_t offset) const;

  uint64_t base_ = 0;
  size_t size_ = 0;
  uint64_t entries_at_ = 0;
  uint64_t sources_ = 0;
  uint64_t texts_ = 0;
  bool has_names_ = false;
  uint64_t unread_debug_info_ = 0;
  std::vector<uint32_t> page_starts_;    // of every kPage-th entry
  std::vector<uint32_t> source_starts_;  // of every kPage-th source
  // The names and records, then at entries_at_ the entries: by start; of equal starts, the smallest
  // last; those that differ in their names only, together. Then sources and texts.
  std::shared_ptr<const SpilledBytes> stored_;
};

}  // namespace pyrometer
