// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "pyrometer/abi/unwind.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// How to find one register of the caller, or the CFA: a rule of DWARF's call frame information.
struct RegisterRule {
  enum class Kind : uint8_t {
    kUndefined,
    kSame,
    kAtCfa,            // *(CFA + offset)
    kCfaPlus,          // CFA + offset
    kInRegister,       // value of `reg`, plus `offset`
    kAtExpression,     // *expression
    kValueExpression,  // expression
  };
  Kind kind = Kind::kSame;
  uint8_t reg = 0;
  int64_t offset = 0;
  std::vector<std::byte> expression;  // DWARF operations

  bool operator==(const RegisterRule&) const = default;
};

// The DWARF rules that a pyro_unwind_rule cannot express. The CFA's kind is kInRegister or
// kValueExpression, never kAtExpression.
struct ExoticRule {
  struct OfRegister {
    uint8_t reg = 0;
    RegisterRule rule;
    bool operator==(const OfRegister&) const = default;
  };
  RegisterRule cfa;
  std::vector<OfRegister> registers;  // those that are not kSame; ascending
  uint8_t return_address = 0;         // the return address register
  bool signal_frame = false;          // no call led to this frame: the caller's pc is exact

  bool operator==(const ExoticRule&) const = default;
};

// Takes the rows of a table while it is being made, so that they are never all in memory.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // The next rows.
  virtual void Put(std::span<const pyro_unwind_row> rows) = 0;
};

// How a table is made.
struct UnwindTableOptions {
  std::stop_token stop{};   // if it comes first, the table is not made
  RowSink* rows = nullptr;  // gets the rows instead of UnwindTable::rows
};

// Rows of a table that are not, or not all, in memory.
class StoredRows {
 public:
  virtual ~StoredRows() = default;
  // Reads the rows from `first` on. False if they cannot be read now.
  virtual bool Read(size_t first, std::span<pyro_unwind_row> out) const = 0;
};

// The unwind table of one object; see abi/unwind.h for its meaning. Immutable once built.
struct UnwindTable {
  // Limits on a table, however large the object claims to be: the kernel side has room for
  // PYRO_MAX_TABLE_PAGES and PYRO_MAX_RULES for all objects. The largest files of a Debian machine
  // have 3,600 pages, 1,100 rules, 860,000 rows, and 8,400 in a page; the largest that people run
  // (TensorFlow, ClickHouse) have four times as many pages and ten times as many rows.
  static constexpr size_t kMostPages = 32768;  // 2 GiB of text, as far as compiled code reaches
  static constexpr size_t kMostRules = 4096;
  static constexpr size_t kMostRows = size_t{16} << 20;
  static constexpr size_t kMostRowsOfPage = 65535;  // pyro_table_page::count has 16 bits

  struct Page {
    uint32_t first_row = 0;
    uint32_t row_count = 0;
  };

  uint64_t first_page = 0;  // pages[i] holds the ELF addresses of page number this + i
  std::vector<Page> pages;
  std::vector<pyro_unwind_row> rows;         // empty if a RowSink got them
  std::shared_ptr<const StoredRows> stored;  // null if they are in `rows`
  std::vector<pyro_unwind_rule> rules;       // by pyro_unwind_row::rule
  std::vector<ExoticRule> exotic;            // by pyro_unwind_rule::cfa_offset

  // True if it covers so little of the object's text that the rest must be compiled code with frame
  // pointers (Chromium: 3 %; Go on arm64: nothing). Otherwise uncovered code is taken to be
  // hand-written, as in x265, of which a fifth is covered.
  bool sparse = false;

  // True if it is empty because the object's file could not be read now: what it would hold is not
  // known.
  bool unread = false;

  // Of the object's executable segments, in bytes.
  uint64_t text = 0;
  uint64_t covered_text = 0;

  // How it was made, for logs and tests.
  uint32_t functions = 0;      // FDEs in it
  uint32_t bad_functions = 0;  // FDEs left out: malformed
  uint32_t overlaps = 0;       // FDEs left out or cut because others cover the same addresses

  // Of the rows, pages and rules: differs if they do.
  uint64_t digest = 0;

  // The same for tables that were made from the same bytes, though of different files, and never
  // again for others. 0: nothing is known of that.
  uint64_t content = 0;

  bool empty() const { return pages.empty(); }
  size_t row_count() const {
    return empty() ? 0 : size_t{pages.back().first_row} + pages.back().row_count;
  }
  // The rows of pages[page], if need be read into `buffer`. Empty if there are none, or if they
  // cannot be read now.
  std::span<const pyro_unwind_row> RowsOf(size_t page, std::vector<pyro_unwind_row>& buffer) const {
    const Page& of_page = pages[page];
    if (stored == nullptr) return std::span(rows).subspan(of_page.first_row, of_page.row_count);
    buffer.resize(of_page.row_count);
    if (!stored->Read(of_page.first_row, buffer)) buffer.clear();
    return buffer;
  }
  // The rule for an address; rule 0 (PYRO_RULE_NONE) where nothing covers it. Null if its rows
  // cannot be read now.
  const pyro_unwind_rule* RuleAt(ElfAddress address) const;
};

}  // namespace pyrometer
