// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "binary/symbols.h"
#include "symbolize/symbol_table_builder.h"

namespace pyrometer {

// What is known of the procedure linkage tables of `elf`: for each stub that can be decoded, what
// it jumps to, by the relocation of the slot that it jumps through: a symbol of `symbols`, or the
// function that chooses the target (IRELATIVE). The rest of the sections for them is Code::kPlt. In
// a file without sections, stubs are looked for in the first 16 MiB of code.
// Sorted, disjoint. What cannot be read costs names, and is no error.
std::vector<SymbolTableBuilder::KnownCode> ReadPlt(const ElfFile& elf, const SectionTable& sections,
                                                   const std::optional<SymbolRange>& symbols);

}  // namespace pyrometer
