// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/result.h"
#include "symbolize/kallsyms.h"
#include "symbolize/kernel_symbols.h"

namespace pyrometer {

// Builds KernelSymbols from the lines of /proc/kallsyms, added in any order.
class KernelSymbolsBuilder {
 public:
  // Errors: kExhausted at 2 million symbols or 60,000 modules.
  Result<void> Add(const KallsymsLine& line);

  // True if there were lines and all had address 0, which is how the kernel hides addresses.
  bool only_zeros() const { return !symbols_.empty() && zeros_; }

  // A function of one of `modules` ends with its module at the latest.
  KernelSymbols Build(std::vector<KernelModule> modules) &&;

 private:
  using ModuleEnds = absl::flat_hash_map<std::string, uint64_t>;

  struct Candidate {
    uint64_t address = 0;
    uint32_t name = 0;
    uint16_t module = 0;
    char type = 0;
  };
  struct Range {
    uint64_t start = 0;
    uint64_t end = 0;
    bool Contains(uint64_t address) const { return address >= start && address < end; }
  };

  std::string_view NameOf(const Candidate& c) const { return names_.data() + c.name; }
  bool Before(const Candidate& a, const Candidate& b) const;
  uint64_t AddressOf(std::string_view marker) const;
  uint64_t EndOf(const Candidate& c, const ModuleEnds& module_ends) const;
  void Keep(const Candidate& c, uint64_t end, KernelSymbols& result) const;

  std::vector<Candidate> symbols_;
  std::vector<std::string> module_names_{""};
  absl::flat_hash_map<std::string, uint16_t> module_indices_{{"", 0}};
  std::string names_;
  bool zeros_ = true;
  Range text_;  // 0, 0: not known
  Range init_text_;
};

}  // namespace pyrometer
