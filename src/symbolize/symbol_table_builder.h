// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// A function as declared in a file's symbol table.
struct DeclaredFunction {
  enum class Binding : uint8_t { kGlobal, kWeak, kLocal };  // best first

  ElfAddress start;
  uint64_t size = 0;  // 0: not declared
  ElfAddress limit;   // where it ends at the latest: the end of its section or segment
  Binding binding = Binding::kGlobal;
  bool typed = true;  // STT_FUNC, STT_GNU_IFUNC; false: only a label in code
};

// Decides which function each address belongs to, and its name:
// - A function without a size extends to the next start of any function or to its limit, whichever
//   comes first, and yields to a function with a size that covers its start.
// - Of functions with equal ranges one name is kept: typed before label, then global before weak
//   before local, then by BetterName. So the order of Add calls does not matter.
// - Functions inside functions are kept, up to 32 deep.
class SymbolTableBuilder {
 public:
  // Errors: kExhausted at 4 million functions or 256 MiB of names.
  Result<void> Add(const DeclaredFunction& function, std::string_view name);

  bool empty() const { return candidates_.empty(); }

  // Functions that start more than 4 GiB above the first one are left out.
  SymbolTable Build() &&;

 private:
  struct Candidate {
    uint64_t start = 0;
    uint64_t end = 0;  // the limit if not sized
    uint32_t name = 0;
    DeclaredFunction::Binding binding = DeclaredFunction::Binding::kGlobal;
    bool typed = true;
    bool sized = true;
  };

  std::string_view NameOf(const Candidate& c) const { return names_.data() + c.name; }
  bool Before(const Candidate& a, const Candidate& b) const;
  bool Better(const Candidate& a, const Candidate& b) const;
  void EndUnsizedAtNext();
  void DropCoveredAndAliases();
  void FillEntries(SymbolTable& table) const;
  void FillNames(SymbolTable& table);

  std::vector<Candidate> candidates_;
  std::string names_;
};

}  // namespace pyrometer
