// SPDX-License-Identifier: Apache-2.0
// The text of /proc/kallsyms and /proc/modules.
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
  char type = 0;  // as nm has it
  std::string_view name;
  std::string_view module;  // "" for the kernel itself
};

// Nothing if the line is not of that form.
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

// The modules in the text of /proc/modules, as ordered there. Those whose address is hidden are
// left out.
std::vector<KernelModule> ParseModules(std::string_view modules);

}  // namespace pyrometer
