// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>

#include "binary/elf_file.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What PT_DYNAMIC tells the dynamic linker: where symbols and relocations are, and in what programs
// and libraries differ. Nothing of it is checked.
struct DynamicSection {
  // Errors: kNotFound if the file is not dynamic; kMalformed; kIo.
  static Result<DynamicSection> Read(const ElfFile& elf);

  std::optional<ElfAddress> symbols;
  std::optional<ElfAddress> names;
  std::optional<ElfAddress> hash;
  std::optional<ElfAddress> gnu_hash;
  uint64_t names_size = 0;
  uint64_t symbol_size = sizeof(Elf64_Sym);

  std::optional<ElfAddress> plt_relocations;
  uint64_t plt_relocations_size = 0;
  std::optional<ElfAddress> relocations;
  uint64_t relocations_size = 0;
  uint64_t relative_relocations = 0;  // how many come first that name no symbol

  bool is_pie = false;
  bool has_soname = false;

 private:
  void Add(const Elf64_Dyn& entry);
};

// Where in the file the byte at `address` is. Errors: kMalformed if nowhere.
Result<FileOffset> FileOffsetOf(const ElfFile& elf, ElfAddress address);

}  // namespace pyrometer
