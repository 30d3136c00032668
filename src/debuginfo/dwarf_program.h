// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/helper_thread.h"
#include "binary/elf_file.h"
#include "debuginfo/source_sink.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The files that together have the debug information of an object. All must outlive its reading.
struct DwarfFiles {
  const ElfFile& object;                // the one that is executed
  const ElfFile* debug = nullptr;       // with what was separated from it; null: it has all itself
  const ElfFile* supplement = nullptr;  // what dwz has moved to a file for many
  std::span<const ElfFile> splits{};    // files with split units: a .dwp, or .dwo files
};

struct DwarfOptions {
  bool without_go = false;  // Go's own tables were read, which say more
  // Reads a half of what is large; null: there is none.
  HelperThread* helper = nullptr;
  // What a thread reads at a time, in bytes of .debug_info; as much as is read of a file at once.
  uint64_t part = uint64_t{1} << 20;
};

struct DwarfCounts {
  uint64_t units = 0;
  uint64_t missing = 0;  // split units that are in none of the files
  uint64_t functions = 0;
  uint64_t inlined_calls = 0;
  uint64_t rows = 0;
  uint64_t malformed = 0;    // units, functions, calls and line number programs
  uint64_t unsupported = 0;  // units: of a version that is not known, or too large
  bool is_cut = false;       // the sink was full
};

// Passes on what DWARF 2 to 5 tells of an object's functions, inlined calls and source lines.
// Errors: kNotFound if there is none; kMalformed; kExhausted if it needs too much memory.
// What is malformed costs its unit, and is counted.
Result<DwarfCounts> ReadDwarf(const DwarfFiles& files, const DwarfOptions& options,
                              SourceSink& sink);

}  // namespace pyrometer
