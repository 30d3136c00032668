// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// Compiles the call frame information of `elf`: .eh_frame, Go's own table of functions for what
// that does not cover, and then .debug_frame. Without any the table is empty, which is not an
// error: some hand-written code has none. Malformed functions are left out and counted. Errors:
// kMalformed, kUnsupported, kExhausted, kIo if there is call frame information of which nothing can
// be read; kExhausted if a stop came first: half a million functions take a second.
Result<UnwindTable> CompileUnwindTable(const ElfFile& elf, const UnwindTableOptions& options = {});

// With `debug_file`, the separate debug file of `elf`: its .debug_frame comes last.
Result<UnwindTable> CompileUnwindTable(const ElfFile& elf, const ElfFile& debug_file,
                                       const UnwindTableOptions& options = {});

}  // namespace pyrometer
