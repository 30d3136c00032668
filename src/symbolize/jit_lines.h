// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/result.h"
#include "symbolize/file_window.h"
#include "symbolize/jit_dump_reader.h"

namespace pyrometer {

// Code of which a jitdump tells, and whose lines are to be read.
struct JitCode {
  uint64_t start = 0;
  uint64_t size = 0;
  std::string_view name{};  // as it is in the file
  bool is_of_v8 = false;    // or of a program that does as V8 does
};

// Its lines, by offset, and the files that they are of.
struct JitCodeLines {
  std::vector<JitLine> lines;
  std::vector<std::string> files;
  uint64_t left_out = 0;
  bool is_bad = false;  // the record has no such form

  size_t bytes() const {
    size_t sum = lines.size() * sizeof(JitLine);
    for (const std::string& file : files) sum += sizeof(uint64_t) + file.size();
    return sum;
  }
};

// What a record JIT_CODE_DEBUG_INFO that begins at `at` says of `code`; nothing if it is of other
// code. REQUIRES: `window` shows the whole record, and code.name lies elsewhere. Errors: kIo.
Result<JitCodeLines> ReadJitLines(FileWindow& window, uint64_t at, const JitCode& code);

}  // namespace pyrometer
