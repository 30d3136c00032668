// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Decompresses the ELF image in .gnu_debugdata ("MiniDebugInfo"): the symbols that were stripped
// from `elf`, compressed with xz. Keeps it in memory, at most 32 MiB. Errors: kNotFound if there is
// none; kExhausted if it needs too much memory; kMalformed; those of ReadSection and of
// ElfFile::FromBytes.
Result<ElfFile> ReadDebugData(const ElfFile& elf, const SectionTable& sections);

}  // namespace pyrometer
