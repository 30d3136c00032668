// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "binary/go_functions.h"
#include "binary/sections.h"
#include "symbolize/symbol_table_builder.h"

namespace pyrometer {

// Adds the files, lines and inlined calls of a Go program's functions, as far as its table tells
// them: that of a newer version, or one that was disguised, may not.
void AddGoSources(const ElfFile& elf, const SectionTable& sections, const GoFunctionTable& table,
                  SymbolTableBuilder& builder);

}  // namespace pyrometer
