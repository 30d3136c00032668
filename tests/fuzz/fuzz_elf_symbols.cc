// SPDX-License-Identifier: Apache-2.0
// Everything that reads an ELF file. Corpus: ELF files, small ones; corpus/elf_symbols has those of
// Go, as tests/shared/made_go_program.h makes them.
#include <cstring>
#include <vector>

#include "binary/debug_file.h"
#include "binary/object_facts.h"
#include "symbolize/elf_symbols.h"
#include "tests/fuzz/fuzz_file.h"
#include "unwind/function_bounds.h"

namespace {

pyrometer::UnnamedFunctions Unnamed(const pyrometer::ElfFile& elf) {
  using namespace pyrometer;
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  std::vector<std::byte> image(size);
  if (size > 0) std::memcpy(image.data(), bytes, size);
  const Result<ElfFile> elf = ElfFile::FromBytes(std::move(image));
  if (!elf) return 0;
  Require(FactsOf(*elf).segments == elf->segments());
  if (const Result<DebugLinks> links = ReadDebugLinks(*elf)) {
    Require(!links->debug_file || links->debug_file->is_valid());
    Require(!links->alternate || links->alternate->is_valid());
  }
  const auto unnamed = [&elf] { return Unnamed(*elf); };
  Result<SymbolTable> table =
      ReadSymbolTable(*elf, {.with_debug_info = true}, unnamed, {.alternate = &*elf});
  if (!table) table = ReadSymbolTable(*elf, {}, unnamed);
  if (!table) return 0;
  for (const Segment& segment : elf->segments()) {
    for (uint64_t i = 0; i < 64; ++i) {
      const ElfAddress address(segment.address.value() + i * 61);
      const std::optional<Symbol> symbol = table->Find(address);
      Require(table->LinesAt(address).size() <= 65);
      if (!symbol) continue;
      Require(symbol->start <= address);
      Require(address.value() - symbol->start.value() < symbol->size);
    }
  }
  return 0;
}
