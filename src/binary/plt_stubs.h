// SPDX-License-Identifier: Apache-2.0
// The stubs of the procedure linkage table (PLT), through which code calls functions that may lie
// in another file. Linkers give them no symbols.
#pragma once

#include <cstdint>
#include <vector>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "binary/symbols.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct PltStub {
  ElfAddress begin;
  ElfAddress end;
  uint32_t name = 0;  // of the function that it calls: for SymbolNames of PltStubs::symbols
};

struct PltStubs {
  std::vector<PltStub> stubs;  // sorted, disjoint
  SymbolRange symbols;         // the dynamic ones
};

// Whether it is a section of stubs, and is executed.
bool IsPltSection(const Section& section);

// Finds the stubs whose function is known: the code jumps to where a slot says, and a relocation
// says of which function the dynamic linker writes the address into that slot. Neither the resolver
// at the beginning of .plt nor stubs of functions that are chosen at run time without a symbol
// (IRELATIVE) are such. Of a file that has more than 65,536 stubs, these are the first. What cannot
// be read of relocations is left out.
// Errors: kNotFound if there are no stubs, or no dynamic symbols in sections; those of FindSymbols.
Result<PltStubs> FindPltStubs(const ElfFile& elf, const SectionTable& sections);

}  // namespace pyrometer
