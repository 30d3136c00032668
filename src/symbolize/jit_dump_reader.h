// SPDX-License-Identifier: Apache-2.0
// Jitdump files: records of the code that a JIT compiler makes, appended as it does, with the code
// itself, its names, and the lines that it was made from (Linux,
// tools/perf/Documentation/jitdump-specification.txt, version 2 of the text, 1 of the files).
//
// Where that says less than readers have to know, they do as tools/perf/util/jitdump.c:
// - the machine may be 0, which CPython writes;
// - code lies at its `code_addr`, whatever its `vma`;
// - lines are of the code that is loaded next, if it lies at the same address;
// - a file name of the one byte 0xff is that of the entry before.
// V8, and Dart like it, add the size of an ELF header to the addresses of lines, for the sake of
// the file that perf makes of each function. Both write 0xdeadbeef into the header's padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Bytes of a name, and of a file's name, at most.
inline constexpr size_t kMostOfJitName = 1024;
// Of one piece of code: lines; names of files, and what they take, 8 bytes each included.
inline constexpr size_t kMostJitLines = 4096;
inline constexpr size_t kMostJitFiles = 256;
inline constexpr size_t kMostOfJitFiles = size_t{8} << 10;
// A record, and a line in one, have no fewer bytes.
inline constexpr uint64_t kLeastJitRecord = 16;
inline constexpr uint64_t kLeastJitLine = 17;

// From `offset` in the code on, until the next line: one of a file.
struct JitLine {
  uint32_t offset = 0;  // bytes, at most the size of the code
  uint32_t line = 0;    // 0: nothing is known from here on
  uint32_t file = 0;    // its index
};

// What is to be read: bytes [begin, end) of a file. REQUIRES: begin is 0, or where an earlier
// reading of the file has ended.
struct JitDumpPart {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t to_read = 0;  // that many bytes, or little more, and no further record
};

// What some records say that lie one behind the other.
struct JitDumpRecords {
  struct Record {
    enum class Kind : uint8_t {
      kLoad,  // code was made at `start`
      kMove,  // the code that began at `old_start` was moved to `start`
    };
    Kind kind = Kind::kLoad;
    uint64_t start = 0;
    uint64_t old_start = 0;
    uint64_t size = 0;                 // > 0; start + size is an address, too
    MonotonicTime time{};              // when; 0 if not known
    std::string_view name{};           // of code that was made: printable; "" if it has none
    std::span<const JitLine> lines{};  // of code that was made, by offset
    std::span<const std::string_view> files{};  // printable, not empty
  };
  std::span<const Record> records{};  // in the order of the file
  uint64_t bad = 0;                   // records that do not have the form, or not all of it
  uint64_t lines_left_out = 0;        // that are too many, or make no sense
  uint64_t read = 0;                  // bytes that were read of the file; the rest was passed over
  uint64_t end = 0;                   // the offset behind all of them, where reading may go on
  uint64_t made = 0;                  // when the file was begun, as its header says it
};
// What it is given is valid during the call.
using JitDumpSink = absl::FunctionRef<void(const JitDumpRecords&)>;

class JitDumpReader {
 public:
  virtual ~JitDumpReader() = default;

  // Gives `sink` all whole records of `part`, in order. True: no further one is in it; false: it
  // has more than was to be read. `fd` stays the caller's. Errors: kUnsupported if the header is of
  // another byte order, version or machine; kMalformed if it is none, or a record has no size that
  // makes sense, behind which nothing is found; kIo. What `sink` has got is true all the same.
  virtual Result<bool> Read(int fd, const JitDumpPart& part, JitDumpSink sink) = 0;
};

// Reads right here. Costs a microsecond a record, whatever the size of its code.
class DirectJitDumpReader : public JitDumpReader {
 public:
  Result<bool> Read(int fd, const JitDumpPart& part, JitDumpSink sink) override;
};

}  // namespace pyrometer
