// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/dwarf_functions.h"
#include "binary/elf_file.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table_builder.h"

namespace pyrometer {

// Adds the files, lines and inlined calls of which the debug information in `file` tells, which is
// `elf` itself or its debug file. Errors: those of DwarfFunctions; kExhausted if there is no room
// for all of them.
Result<void> AddDwarfSources(const ElfFile& elf, const DwarfFile& file,
                             SymbolTableBuilder& builder);

}  // namespace pyrometer
