// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "debuginfo/source_sink.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What was read of a Go program.
struct GoCounts {
  uint64_t functions = 0;
  uint64_t inlined_calls = 0;
  uint64_t rows = 0;
  uint64_t malformed_functions = 0;  // left out: no record, no name, or out of order
  // Functions that have inlined calls which cannot be told: neither are the lines of their code.
  uint64_t unknown_inlines = 0;
  uint64_t malformed_lines = 0;  // functions without lines, since what tells them is malformed
  bool is_cut = false;           // the sink was full
};

// Gives `sink` the functions of a Go program, the calls inlined into them and their lines, from the
// table of functions (pclntab) that every Go program carries for its own stack traces, stripped or
// not. Of Go 1.12 and newer; of older ones functions alone. Names are as Go's runtime shows them:
// main.(*T).Method, main.Generic[...]. Functions end where their lines do, so that padding has no
// name.
//
// Errors: kNotFound if it is no Go program; kMalformed if its table does not fit its code;
// kExhausted if the table has more than 256 MiB; kIo.
Result<GoCounts> ReadGoProgram(const ElfFile& elf, const SectionTable& sections, SourceSink& sink);

}  // namespace pyrometer
