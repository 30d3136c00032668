// SPDX-License-Identifier: Apache-2.0
// The records of a jitdump: what a JIT compiler tells of its code, in the form of Linux,
// tools/perf/Documentation/jitdump-specification.txt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Code that appeared at [start, end).
struct JitCode {
  static constexpr size_t kMaxName = 1024;
  static constexpr size_t kMostFiles = 255;
  static constexpr size_t kMostFileBytes = size_t{64} << 10;
  static constexpr size_t kMostLines = size_t{1} << 16;
  static constexpr uint64_t kMostCode = uint64_t{1} << 30;
  // V8 20 adds to the addresses of lines what an ELF header takes, which `perf inject` once forgot.
  static constexpr uint32_t kElfHeader = 0x40;

  // From `offset` in the code, up to the next one, it was made from this line.
  struct Line {
    uint32_t offset = 0;  // at most the size of the code and kElfHeader
    uint32_t line = 0;    // 0: not known
    uint32_t file = 0;    // in `files`
    bool operator==(const Line&) const = default;
  };

  uint64_t start = 0;
  uint64_t end = 0;
  MonotonicTime when;
  std::optional<uint64_t> moved_from{};  // it lay there before: the rest is empty
  std::string name{};                    // printable
  std::vector<std::string> files{};      // printable
  std::vector<Line> lines{};             // by offset
};

// What of a jitdump is to be read.
struct JitDumpPart {
  uint64_t begin = 0;    // where a record begins; 0: from the first
  uint64_t created = 0;  // then: what JitDumpEnd told of the file
  uint64_t size = 0;     // of the file
  // About so much is read: not less than a record, and all between lines and their code.
  uint64_t most_records = 0;  // of any kind
  uint64_t most_bytes = 0;    // those of code are passed over
  bool has_stopped = false;   // nobody writes to it now: what is cut off will not come
};
struct JitDumpEnd {
  uint64_t offset = 0;      // behind what is done with; 0: there is no header yet
  uint64_t created = 0;     // when the file was begun
  bool is_another = false;  // the file was begun anew since: nothing was read
  bool is_broken = false;   // nothing that follows can be read
  bool is_cut = false;      // at the part's limits: what follows can be read at once
  uint64_t records = 0;
  uint64_t bad_records = 0;  // whose code or lines make no sense
};

using OnJitCode = absl::FunctionRef<void(const JitCode&)>;

// Reads records. One that is not complete yet is left for the next time, and so are lines whose
// code has not come yet. `fd` stays the caller's. Errors: kUnsupported for a file that this cannot
// make sense of (the byte order of another machine, times of a processor's clock, another version);
// kMalformed if it is no jitdump; kIo. What came before an error is good.
Result<JitDumpEnd> ReadJitDumpRecords(int fd, const JitDumpPart& part, OnJitCode on_code);

}  // namespace pyrometer
