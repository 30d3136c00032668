// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// The functions of `elf`: those of .symtab, which has all of them; without one, those of
// .gnu_debugdata and of .dynsym together. Only what lies in an executable segment counts.
// An empty table is an answer: a file may have no symbols at all.
// Errors: there were symbols, but none could be read (kMalformed, kExhausted, kIo).
Result<SymbolTable> ReadSymbolTable(const ElfFile& elf);

}  // namespace pyrometer
