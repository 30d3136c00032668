// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The ELF image in .gnu_debugdata ("MiniDebugInfo"): the symbols that were stripped from `elf`,
// compressed by xz. Holds it in memory, at most 32 MiB.
// Errors: kNotFound if there is none; kExhausted if it asks for too much memory; kMalformed.
Result<ElfFile> ReadDebugData(const ElfFile& elf, const SectionTable& sections);

}  // namespace pyrometer
