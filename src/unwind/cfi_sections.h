// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"
#include "unwind/call_frame_info.h"

namespace pyrometer {

// `sections` is what SectionTable::Read says of `elf`, here and below.

// .eh_frame of `elf`: by its section, or else by the program header PT_GNU_EH_FRAME, as the C++
// runtime finds it. Errors: kNotFound if there is none (or none left, as in separate debug files);
// kMalformed; kExhausted beyond 64 MiB.
Result<CfiSection> ReadEhFrame(const ElfFile& elf, const Result<SectionTable>& sections);

// .debug_frame of `elf`, decompressed. Errors: as above; kUnsupported for a compression other than
// zlib and zstd.
Result<CfiSection> ReadDebugFrame(const ElfFile& elf, const Result<SectionTable>& sections);

}  // namespace pyrometer
