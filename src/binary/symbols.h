// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "binary/byte_source.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where a symbol table and its names lie in a file.
struct SymbolRange {
  FileOffset symbols;
  uint64_t count = 0;
  FileOffset names;
  uint64_t names_size = 0;
};

// The symbol table in the section of `type` (SHT_SYMTAB or SHT_DYNSYM). kNotFound if there is none.
Result<SymbolRange> FindSymbols(const SectionTable& sections, uint32_t type);

// The dynamic symbols as the dynamic linker finds them: by PT_DYNAMIC, counted by the hash table.
// For files without sections. kNotFound if the file is not dynamic or has no hash table.
Result<SymbolRange> FindDynamicSymbols(const ElfFile& elf);

// Calls `visit` with every symbol but the first, which is void. Reads in steps of 64 KiB.
Result<void> ForEachSymbol(const ElfFile& elf, const SymbolRange& range,
                           const std::function<void(const Elf64_Sym&)>& visit);

// Reads names of symbols. In ascending order of offsets that costs one pass of large reads.
class SymbolNames {
 public:
  static constexpr size_t kMaxName = 4096;  // longer ones are cut

  // `elf` outlives this.
  SymbolNames(const ElfFile& elf, const SymbolRange& range);

  // The name at st_name `offset`, valid until the next call. kMalformed if outside of the table.
  Result<std::string_view> At(uint32_t offset);

 private:
  uint64_t begin_;
  ReadAhead bytes_;
};

}  // namespace pyrometer
