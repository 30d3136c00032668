// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"
#include "unwind/call_frame_info.h"

namespace pyrometer {

// The call frame information of a stripped Go program: what Go's linker writes into .debug_frame,
// made again of what stripping leaves, how much stack each function has taken at each instruction.
// Frame pointers do not lead to the caller of a function without a frame. Errors: kNotFound if this
// is no Go program; those of FindGoTable.
Result<CfiSection> MakeGoFrameInfo(const ElfFile& elf, const SectionTable& sections);

}  // namespace pyrometer
