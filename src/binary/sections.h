// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "binary/elf_file.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct Section {
  std::string name;
  Elf64_Shdr header{};
};

// The section headers of an ELF file; empty if it has none, which is valid.
class SectionTable {
 public:
  // Errors: kMalformed if the table is not where the header says, or contradicts itself. The file
  // can still be used by its segments.
  static Result<SectionTable> Read(const ElfFile& elf);

  std::span<const Section> all() const { return sections_; }

  // The first section of this name or type (SHT_*), or null.
  const Section* Find(std::string_view name) const;
  const Section* FindType(uint32_t type) const;

  // Section `index`, as in sh_link and st_shndx; null if there is no such section.
  const Section* At(uint32_t index) const;

 private:
  std::vector<Section> sections_;
};

// Reads the contents of a section: decompressed if it is SHF_COMPRESSED with zlib or zstd, empty
// if it is SHT_NOBITS. Errors: kExhausted if that is more than `limit` bytes; kUnsupported for
// another compression; kMalformed.
Result<std::vector<std::byte>> ReadSection(const ElfFile& elf, const Section& section,
                                           size_t limit);

}  // namespace pyrometer
