// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// The only way to read files of profiled programs. A descriptor goes in, values come out; no paths,
// so an implementation needs neither a file system nor privileges.
class Indexer {
 public:
  virtual ~Indexer() = default;

  // In all methods descriptors are open for reading and stay the caller's.

  // Build id and segments; no segments if the file is not an ELF file. Costs a few reads, 3 to 6
  // µs. Errors: kUnsupported for ELF files of other machines; kMalformed; kIo.
  virtual Result<ObjectFacts> Inspect(int fd) = 0;

  // The file's functions; see ReadSymbolTable. Half a microsecond a function.
  virtual Result<SymbolTable> Symbols(int fd, const SymbolTableOptions& options) = 0;

  // How to unwind the file's functions; see CompileUnwindTable. About 70 ns a row: 2 ms for libc,
  // 60 ms for libLLVM. A stop makes it fail soon, with kExhausted.
  virtual Result<UnwindTable> Unwind(int fd, const UnwindTableOptions& options) = 0;
  // The same with what the file's separate debug file adds, which is read from `debug_fd`.
  virtual Result<UnwindTable> Unwind(int fd, int debug_fd, const UnwindTableOptions& options) = 0;
};

}  // namespace pyrometer
