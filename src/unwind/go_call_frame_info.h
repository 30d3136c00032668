// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"
#include "unwind/call_frame_info.h"

namespace pyrometer {

// The call frame information that Go's linker writes into the .debug_frame of a program (x86_64),
// of one that may have none: from its own table of functions, which says how deep the stack is at
// each instruction. Unlike there it tells where RBP is saved (since Go 1.21), which leads back from
// other stacks. Functions count as far as that table does. Errors: kNotFound if this is no such
// program; kExhausted if it takes more than 64 MiB; those of FindGoFunctions().
Result<CfiSection> MakeGoCallFrameInfo(const ElfFile& elf, const SectionTable& sections);

}  // namespace pyrometer
