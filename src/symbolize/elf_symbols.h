// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "base/byte_writer.h"
#include "binary/elf_file.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Where functions lie, whose names are not known: sorted, disjoint.
using UnnamedFunctions = std::vector<CodeRange>;

// The files that have an object's symbols.
struct SymbolFiles {
  const ElfFile& object;
  const ElfFile* debug = nullptr;  // its separate debug file; null: there is none
};

// Reads the functions of `elf`: those in .symtab, which has all of them, its own or else that of
// the debug file; without one, those in .gnu_debugdata and .dynsym together, and where these have
// none, what `unnamed` returns, which is called only then; may be null. Only functions in an
// executable segment count. What no symbol covers: stubs of .plt and its like have the names of the
// functions that they jump to; without .symtab the code of .init and .fini and of an executable's
// entry point is what it is by its section and by the file's header. An empty table is not an
// error: a file may have no symbols at all. Errors: kMalformed, kUnsupported, kExhausted, kIo if
// there are symbols, but none can be read; kExhausted if there is no room for them.
Result<SymbolTable> ReadSymbolTable(const ElfFile& elf, const SymbolTableOptions& options = {},
                                    const std::function<UnnamedFunctions()>& unnamed = {});

// The same, with the bytes given to `bytes`: see SymbolTable::From().
Result<SymbolTableShape> WriteSymbolTable(const SymbolFiles& files, ByteWriter& bytes,
                                          const std::function<UnnamedFunctions()>& unnamed);

}  // namespace pyrometer
