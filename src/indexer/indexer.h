// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "binary/debug_links.h"
#include "indexer/reading.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "symbolize/jit_dump_records.h"
#include "symbolize/perf_map_lines.h"
#include "symbolize/source_map.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Descriptors open for reading, which stay the caller's.
struct FilesToRead {
  int own = -1;
  int debug = -1;       // of its separate debug file; -1: none
  int supplement = -1;  // of the file that dwz has moved parts of these to; likewise
  // Of those with split units: a package (.dwp), or at most DebugLinks::kMostSplits others (.dwo).
  std::vector<int> splits{};
};

// What was made, and from what.
template <typename T>
struct Made {
  T value;
  Reading reading;
};

// Of the processes that read, if they are others.
struct ReaderCounters {
  uint64_t started = 0;
  uint64_t crashed = 0;  // of these: ended by themselves, or talked nonsense
  uint64_t late = 0;     // of these: did not answer in time
  uint64_t running = 0;  // now
};

// The only way to read files of profiled programs. A descriptor goes in, values come out; no paths,
// so an implementation needs neither a file system nor privileges. All methods read files and so
// may hang with their file system: FileWorkers call them. Any number of threads at once.
class Indexer {
 public:
  virtual ~Indexer() = default;

  // Build ids and segments; no segments if the file is not an ELF file. Costs some reads, 6 to 20
  // µs. Errors: kUnsupported for ELF files of other machines; kMalformed; kIo.
  virtual Result<ObjectFacts> Inspect(int fd) = 0;

  // Where a file says that more of its debug information is. Empty if it is not an ELF file.
  virtual Result<DebugLinks> Links(int fd) = 0;

  // The CRC-32 of the file's bytes, by which .gnu_debuglink names a file.
  virtual Result<uint32_t> Checksum(int fd) = 0;

  // The file's functions; see ReadSymbolTable. Half a microsecond a function.
  virtual Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                            const SymbolTableOptions& options) = 0;

  // What debug information tells of the file's code; see SourceMap. Empty if there is none.
  virtual Result<Made<SourceMap>> Sources(const FilesToRead& files,
                                          const SymbolTableOptions& options) = 0;

  // How to unwind the file's functions, with what its debug file adds; see CompileUnwindTable.
  // About 70 ns a row: 2 ms for libc, 60 ms for libLLVM. A stop makes it fail soon, with
  // kExhausted.
  virtual Result<Made<UnwindTable>> Unwind(const FilesToRead& files,
                                           const UnwindTableOptions& options) = 0;

  // True if the same would be made of these files. Errors: those of reading them.
  virtual Result<bool> Repeats(const FilesToRead& files, const Reading& reading) = 0;

  // The file's bytes at `offset`, at most kMostBytes, fewer at its end. Errors: those of reading
  // it.
  static constexpr size_t kMostBytes = 4096;
  virtual Result<std::vector<std::byte>> Bytes(int fd, FileOffset offset, size_t size) = 0;

  // Lines of a perf map; see ReadPerfMapLines().
  virtual Result<PerfMapEnd> PerfMapLines(int fd, const PerfMapPart& part,
                                          OnPerfMapFunction on_function) = 0;

  // Records of a jitdump; see ReadJitDumpRecords().
  virtual Result<JitDumpEnd> JitDumpRecords(int fd, const JitDumpPart& part, OnJitCode on_code) = 0;

  virtual ReaderCounters reader_counters() const { return {}; }
};

}  // namespace pyrometer
