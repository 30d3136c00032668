// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

// The unwind table of one object; see abi/unwind.h for its meaning. Immutable once built.
struct UnwindTable {
  // Limits on a table, however large the object claims to be: the kernel side has room for
  // PYRO_MAX_TABLE_PAGES and PYRO_MAX_RULES for all objects. The largest files of a Debian machine
  // have 3,600 pages, 1,100 rules, 860,000 rows, and 8,400 in a page.
  static constexpr size_t kMostPages = 8192;  // 512 MiB of text
  static constexpr size_t kMostRules = 4096;
  static constexpr size_t kMostRows = size_t{8} << 20;
  static constexpr size_t kMostRowsOfPage = 65535;  // pyro_table_page::count has 16 bits

  struct Page {
    uint32_t first_row = 0;
    uint32_t row_count = 0;
  };

  uint64_t first_page = 0;  // pages[i] holds the ELF addresses of page number this + i
  std::vector<Page> pages;
  std::vector<pyro_unwind_row> rows;
  std::vector<pyro_unwind_rule> rules;  // by pyro_unwind_row::rule
  std::vector<ExoticRule> exotic;       // by pyro_unwind_rule::cfa_offset

  // True if it covers so little of the object's text that the rest must be compiled code with frame
  // pointers (Chromium: 3 %; Go: nothing). Otherwise uncovered code is taken to be hand-written, as
  // in x265, of which a fifth is covered.
  bool sparse = false;

  // Of the object's executable segments, in bytes.
  uint64_t text = 0;
  uint64_t covered_text = 0;

  // How it was made, for logs and tests.
  uint32_t functions = 0;      // FDEs in it
  uint32_t bad_functions = 0;  // FDEs left out: malformed
  uint32_t overlaps = 0;       // FDEs left out or cut because others cover the same addresses

  bool empty() const { return rows.empty(); }
  // The rule for an address; rule 0 (PYRO_RULE_NONE) where nothing covers it.
  const pyro_unwind_rule& RuleAt(ElfAddress address) const;
};

}  // namespace pyrometer
