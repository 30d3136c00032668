// SPDX-License-Identifier: Apache-2.0
// Parses the text of /proc/kallsyms and /proc/modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyrometer {

// "ffffffffc0a00000 t nft_do_chain	[nf_tables]"
struct KallsymsLine {
  uint64_t address = 0;
  char type = 0;  // as in nm's output
  std::string_view name;
  std::string_view module;  // "" for the kernel itself
};

// Returns nothing if the line does not have that form.
std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line);

// True for code: types t, T, w and W.
constexpr bool IsText(char type) {
  return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

struct KernelModule {
  std::string name;
  uint64_t start = 0;  // of its memory
  uint64_t end = 0;

  bool operator==(const KernelModule&) const = default;
};

// Parses the text of /proc/modules, in its order. Leaves out modules whose address is hidden.
std::vector<KernelModule> ParseModules(std::string_view modules);

}  // namespace pyrometer
