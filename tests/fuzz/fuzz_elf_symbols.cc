// SPDX-License-Identifier: Apache-2.0
// Everything that reads an ELF file. Corpus: ELF files, small ones.
#include <algorithm>
#include <cstring>
#include <vector>

#include "binary/object_facts.h"
#include "symbolize/elf_symbols.h"
#include "tests/fuzz/fuzz_file.h"
#include "unwind/function_bounds.h"

namespace {

using namespace pyrometer;

UnnamedFunctions Unnamed(const ElfFile& elf) {
  UnnamedFunctions unnamed;
  uint64_t end = 0;
  for (const FunctionBounds& function : ReadFunctionBounds(elf)) {
    Require(function.begin >= end);
    Require(function.end > function.begin);
    end = function.end;
    unnamed.push_back({ElfAddress(function.begin), ElfAddress(end)});
  }
  return unnamed;
}

// A symbol counts more than any bounds, and what has neither is nothing.
void RequireAgreement(const SymbolTable& with_bounds, const SymbolTable& table, ElfAddress address,
                      const UnnamedFunctions& unnamed) {
  const std::optional<Symbol> told = with_bounds.Find(address);
  if (const std::optional<Symbol> symbol = table.Find(address)) {
    Require(told && told->name == symbol->name && told->start == symbol->start);
  }
  if (!told) return;
  Require(told->start <= address);
  Require(address.value() - told->start.value() < told->size);
  if (!told->name.empty()) return;
  const auto after = std::ranges::upper_bound(unnamed, address, {}, &CodeRange::begin);
  Require(after != unnamed.begin() && address < std::prev(after)->end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::vector<std::byte> image(size);
  if (size > 0) std::memcpy(image.data(), bytes, size);
  const Result<ElfFile> elf = ElfFile::FromBytes(std::move(image));
  if (!elf) return 0;
  Require(FactsOf(*elf).segments == elf->segments());
  const UnnamedFunctions unnamed = Unnamed(*elf);
  const Result<SymbolTable> with_bounds = ReadSymbolTable(*elf, {}, [&] { return unnamed; });
  const Result<SymbolTable> table = ReadSymbolTable(*elf);
  if (!with_bounds || !table) return 0;
  for (const Segment& segment : elf->segments()) {
    for (uint64_t i = 0; i < 64; ++i) {
      RequireAgreement(*with_bounds, *table, ElfAddress(segment.address.value() + i * 61), unnamed);
    }
  }
  return 0;
}
