// SPDX-License-Identifier: Apache-2.0
// /proc/kallsyms, and after a line of "===" /proc/modules.
#include <string_view>

#include "symbolize/kernel_symbols.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const size_t border = std::min(text.find("===\n"), size);
  const UniqueFd kallsyms = FuzzFile(bytes, border);
  Result<KernelSymbols> symbols = KernelSymbols::Read(kallsyms.get(), text.substr(border));
  if (!symbols) return 0;
  symbols->Apply({.address = KernelAddress(0x40), .size = 0x20, .removed = false, .name = "bpf_x"});
  for (uint64_t address = 0; address < 0x200; ++address) {
    const std::optional<KernelSymbol> symbol = symbols->Find(KernelAddress(address));
    if (!symbol) continue;
    Require(symbol->start.value() <= address);
    Require(address - symbol->start.value() < symbol->size);
    Require(!symbol->name.empty());
  }
  return 0;
}
