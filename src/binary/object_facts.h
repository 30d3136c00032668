// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// The facts needed of every object when it is first seen. Reads notes and section headers, and for
// its hash the beginning and the end of a file without a build id.
ObjectFacts FactsOf(const ElfFile& elf);

}  // namespace pyrometer
