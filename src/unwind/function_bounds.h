// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "binary/elf_file.h"

namespace pyrometer {

// Where a function begins and ends, or a part of one that the compiler has put elsewhere.
struct FunctionBounds {
  uint64_t begin = 0;  // the ELF's own address
  uint64_t end = 0;

  bool operator==(const FunctionBounds&) const = default;
};

// What .eh_frame of `elf` tells, which stripping leaves: sorted, disjoint, in executable code. What
// is malformed is left out, and with no .eh_frame, or one beyond the limits of
// CompileUnwindTable(), there is nothing. Takes the section's size of memory, and 60 bytes a
// function, while it works.
std::vector<FunctionBounds> ReadFunctionBounds(const ElfFile& elf);

}  // namespace pyrometer
