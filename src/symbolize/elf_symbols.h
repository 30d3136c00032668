// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Reads the functions of `elf`: those in .symtab, which has all of them; without one, those in
// .gnu_debugdata and .dynsym together. Only functions in an executable segment count.
// An empty table is not an error: a file may have no symbols at all.
// Errors: kMalformed, kUnsupported, kExhausted, kIo if there are symbols, but none can be read;
// kExhausted if there is no room for them.
Result<SymbolTable> ReadSymbolTable(const ElfFile& elf, const SymbolTableOptions& options = {});

}  // namespace pyrometer
