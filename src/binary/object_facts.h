// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// The facts needed of every object when it is first seen. Reads notes, and sections only if no
// note segment holds the build id.
ObjectFacts FactsOf(const ElfFile& elf);

}  // namespace pyrometer
