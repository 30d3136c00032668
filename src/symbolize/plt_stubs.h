// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pyrometer/ids.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// A stub of the procedure linkage table: a few instructions that jump to where a slot of the global
// offset table points.
struct PltStub {
  CodeRange range;
  ElfAddress slot;
};

// Where stubs are looked for.
enum class PltPlace {
  kSection,   // nothing else is there
  kAnywhere,  // only those that look like nothing else: of 16 bytes or more, aligned
};

// The stubs in `code`, which lies at `begin`, sorted and disjoint: of GNU ld, gold, lld and mold,
// of `machine` (EM_X86_64, EM_AARCH64). What leads to the dynamic linker is none (the beginning of
// the table, and the half of a stub with branch tracking that binds its slot).
std::vector<PltStub> FindPltStubs(std::span<const std::byte> code, ElfAddress begin,
                                  uint16_t machine, PltPlace place);

}  // namespace pyrometer
