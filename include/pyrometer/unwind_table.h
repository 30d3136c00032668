// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pyrometer/abi/unwind.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// How one register of the caller, or the CFA, is found: a rule of DWARF's call frame information.
struct RegisterRule {
  enum class Kind : uint8_t {
    kUndefined,
    kSame,
    kAtCfa,            // *(CFA + offset)
    kCfaPlus,          // CFA + offset
    kInRegister,       // that of `reg`, plus `offset`
    kAtExpression,     // *expression
    kValueExpression,  // expression
  };
  Kind kind = Kind::kSame;
  uint8_t reg = 0;
  int64_t offset = 0;
  std::vector<std::byte> expression;  // DWARF operations

  bool operator==(const RegisterRule&) const = default;
};

// What a pyro_unwind_rule cannot express, as DWARF has it. The CFA's kinds are kInRegister,
// kAtExpression (never) and kValueExpression.
struct ExoticRule {
  struct OfRegister {
    uint8_t reg = 0;
    RegisterRule rule;
    bool operator==(const OfRegister&) const = default;
  };
  RegisterRule cfa;
  std::vector<OfRegister> registers;  // those that are not kSame; ascending
  uint8_t return_address = 0;         // the register that stands for it
  bool signal_frame = false;          // no call led to this frame: the caller's pc is exact

  bool operator==(const ExoticRule&) const = default;
};

// The unwind table of one object; see abi/unwind.h for its meaning. Immutable once built.
struct UnwindTable {
  // However large an object says it is, its table is no larger: the kernel side has room for
  // PYRO_MAX_TABLE_PAGES and PYRO_MAX_RULES of all objects. The largest files of a Debian machine
  // have 3,600 pages, 1,100 rules, 860,000 rows, and 8,400 in a page.
  static constexpr size_t kMostPages = 8192;  // 512 MiB of text
  static constexpr size_t kMostRules = 4096;
  static constexpr size_t kMostRows = size_t{8} << 20;
  static constexpr size_t kMostRowsOfPage = 65535;  // pyro_table_page::count has 16 bits

  struct Page {
    uint32_t first_row = 0;
    uint32_t row_count = 0;
  };

  uint64_t first_page = 0;  // pages[i] holds the ELF addresses whose number of page is this + i
  std::vector<Page> pages;
  std::vector<pyro_unwind_row> rows;
  std::vector<pyro_unwind_rule> rules;  // by pyro_unwind_row::rule
  std::vector<ExoticRule> exotic;       // by pyro_unwind_rule::cfa_offset

  // Covers so little of the object's text that the rest is compiled code, which must then have
  // frame pointers (Chromium: 3 %; Go: nothing). Else what is not covered was written by hand, like
  // x265's, of which a fifth is covered.
  bool sparse = false;

  // Of the object's executable segments, in bytes.
  uint64_t text = 0;
  uint64_t covered_text = 0;

  // How it came about, for logs and tests.
  uint32_t functions = 0;      // FDEs that are in it
  uint32_t bad_functions = 0;  // FDEs left out: malformed
  uint32_t overlaps = 0;       // FDEs left out or cut, because others cover the same addresses

  bool empty() const { return rows.empty(); }
  // The rule for an address; rule 0 (PYRO_RULE_NONE) where nothing covers it.
  const pyro_unwind_rule& RuleAt(ElfAddress address) const;
};

}  // namespace pyrometer
