// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "binary/debug_file.h"
#include "foreign/reading.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "symbolize/jit_dump_reader.h"
#include "symbolize/perf_map_reader.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Descriptors open for reading, which stay the caller's.
struct FilesToRead {
  int own = -1;
  int debug = -1;         // of its separate debug file; -1: none
  int alternate = -1;     // of the file that its debug information refers to (dwz); -1: none
  bool is_large = false;  // may take much memory; else kExhausted is no last word
};

// How long it may take to read a file of so many bytes: 5 s for any, and one for each 32 MiB. The
// slowest in sight, an archive of debug information on a busy machine, takes a tenth of that.
constexpr std::chrono::nanoseconds ReadingTime(uint64_t size) {
  return std::chrono::seconds(5 + std::min<uint64_t>(size >> 25, 55));
}

// What was made, and from what.
template <typename T>
struct Made {
  T value;
  Reading reading;
};

// The only way to read files of profiled programs. A descriptor goes in, values come out; no paths,
// so that they are read by a process that has neither a file system nor privileges. All methods
// read files and so may hang with their file system: QuestionThreads call them. Any number of
// threads at once. The costs are those of reading itself. With SandboxedIndexer come 30 to 60 µs
// for each question, 0.5 ms for one that takes a new reader, and the wait for memory that others
// have.
class Indexer {
 public:
  virtual ~Indexer() = default;

  // Build id and segments; no segments if the file is not an ELF file. Costs a few reads, 3 to 6
  // µs. Errors: kUnsupported for ELF files of other machines; kMalformed; kIo.
  virtual Result<ObjectFacts> Inspect(int fd) = 0;
  // What a question of headers or code takes at most.
  static constexpr std::chrono::seconds kMostOfHeaders{4};

  // Where its debug information is. Costs what sections do. Errors: kMalformed; kUnsupported; kIo.
  virtual Result<DebugLinks> Links(int fd) = 0;

  // See ChecksumOf(). A second for a gigabyte. Errors: kIo.
  virtual Result<uint32_t> Checksum(int fd) = 0;

  // The file's functions, with what its debug file adds; see ReadSymbolTable. Half a microsecond a
  // function; with debug information some 7 s for a gigabyte of that.
  virtual Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                            const SymbolTableOptions& options) = 0;

  // How to unwind the file's functions, with what its debug file adds; see CompileUnwindTable.
  // About 70 ns a row: 2 ms for libc, 60 ms for libLLVM. A stop makes it fail soon, with
  // kExhausted.
  virtual Result<Made<UnwindTable>> Unwind(const FilesToRead& files,
                                           const UnwindTableOptions& options) = 0;

  // The file's bytes from `offset` on, at most kMostOfCode; fewer at its end. Errors: kIo.
  static constexpr size_t kMostOfCode = 4096;
  virtual Result<std::vector<std::byte>> ReadCode(int fd, uint64_t offset) = 0;

  // See PerfMapReader; takes no longer than `at_most`. What it gives `sink` fits `part` and has the
  // form. Some 50 ns a line.
  virtual Result<std::optional<PerfMapFunction>> PerfMapLines(int fd, const PerfMapPart& part,
                                                              std::chrono::nanoseconds at_most,
                                                              PerfMapSink sink) = 0;

  // See JitDumpReader; takes no longer than `at_most`. What it gives `sink` fits `part` and has the
  // form. Some 2 µs a record.
  virtual Result<bool> JitDumpRecords(int fd, const JitDumpPart& part,
                                      std::chrono::nanoseconds at_most, JitDumpSink sink) = 0;

  // True if the same would be made of these files: each byte that was read is read again. Errors:
  // those of reading them.
  virtual Result<bool> Repeats(const FilesToRead& files, const Reading& reading) = 0;
};

}  // namespace pyrometer
