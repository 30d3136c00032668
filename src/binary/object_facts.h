// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// What is wanted of every object at first sight. Reads notes, and sections only if no note
// segment holds the build id.
ObjectFacts FactsOf(const ElfFile& elf);

}  // namespace pyrometer
