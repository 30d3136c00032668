// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "binary/elf_file.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Where functions lie, whose names are not known: sorted, disjoint.
using UnnamedFunctions = std::vector<CodeRange>;

// What is known of a file beside what it says itself. Null: nothing.
struct SeparateFiles {
  const ElfFile* debug = nullptr;      // its debug file, which also has the symbols that it lacks
  const ElfFile* alternate = nullptr;  // what its debug information shares with other files'
};

// Reads the functions of `elf`: those in .symtab, which has all of them; without one, those in
// .gnu_debugdata, in a Go program's own table of functions and in .dynsym together, and where these
// have none, what `unnamed` returns; may be null. It is called only then, and where a function
// without a size would reach far. Only functions in an executable segment count.
// Without .symtab the code of .plt, .init and .fini and of an executable's entry point is what it
// is by its section and by the file's header, where no symbol covers it.
// A stub through which `elf` calls a function of another file is `name@plt`, where `name` is that
// of the function: whatever symbols `elf` has, for these have none of stubs, but where one covers
// it. The stubs are those that FindPltStubs finds in `elf` itself.
// An empty table is not an error: a file may have no symbols at all.
// Of the source of functions a Go program's own table tells, else debug information: if
// `options` say so it is read, in `elf` or in its debug file, and else counted.
// Errors: kMalformed, kUnsupported, kExhausted, kIo if there are symbols, but none can be read;
// kExhausted if there is no room for them; those of debug information that is to be read.
Result<SymbolTable> ReadSymbolTable(const ElfFile& elf, const SymbolTableOptions& options = {},
                                    const std::function<UnnamedFunctions()>& unnamed = {},
                                    const SeparateFiles& separate = {});

}  // namespace pyrometer
