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

// The place of a symbol table and its names in a file.
struct SymbolRange {
  FileOffset symbols;
  uint64_t count = 0;
  FileOffset names;
  uint64_t names_size = 0;
};

// Finds the symbol table in the section of `type` (SHT_SYMTAB or SHT_DYNSYM). Errors: kNotFound if
// there is none; kUnsupported if it is compressed; kExhausted; kMalformed.
Result<SymbolRange> FindSymbols(const SectionTable& sections, uint32_t type);

// Finds the dynamic symbols as the dynamic linker does, by PT_DYNAMIC, and counts them by the hash
// table. For files without sections. Errors: kNotFound if the file is not dynamic or has no hash
// table; kExhausted; kMalformed.
Result<SymbolRange> FindDynamicSymbols(const ElfFile& elf);

// True if it is an executable and no library. Position-independent ones say so since binutils 2.26,
// but for Go's; a library may have an interpreter as well (libc.so.6).
bool IsProgram(const ElfFile& elf);

// Calls `visit` with every symbol but the first, the null symbol. Reads in steps of 64 KiB.
Result<void> ForEachSymbol(const ElfFile& elf, const SymbolRange& range,
                           const std::function<void(const Elf64_Sym&)>& visit);

// Reads symbol names. In ascending order of offsets, this takes one pass of large reads.
class SymbolNames {
 public:
  static constexpr size_t kMaxName = 4096;  // longer names are cut

  // `elf` must outlive this.
  SymbolNames(const ElfFile& elf, const SymbolRange& range);

  // The name at st_name `offset`, valid until the next call. kMalformed if outside the table.
  Result<std::string_view> At(uint32_t offset);

 private:
  uint64_t begin_;
  ReadAhead bytes_;
};

}  // namespace pyrometer
