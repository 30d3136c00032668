// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The place of relocations (Elf64_Rela) in a file.
struct RelocationRange {
  FileOffset begin;
  uint64_t count = 0;
};

// The relocations that a file gets when it is loaded: first those of its procedure linkage table
// (DT_JMPREL), then the others (DT_RELA), as far as they name symbols. Those of a static program,
// which is not dynamic, are found by its sections. At most 4 million, the first.
std::vector<RelocationRange> FindRelocations(const ElfFile& elf, const SectionTable& sections);

// Calls `visit` with each until it returns false. Reads in steps of 64 KiB.
Result<void> ForEachRelocation(const ElfFile& elf, const RelocationRange& range,
                               const std::function<bool(const Elf64_Rela&)>& visit);

}  // namespace pyrometer
