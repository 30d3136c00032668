// SPDX-License-Identifier: Apache-2.0
#include "indexer/in_process_indexer.h"

#include <utility>

#include "binary/elf_file.h"
#include "binary/object_facts.h"
#include "symbolize/elf_symbols.h"
#include "unwind/table_compiler.h"

namespace pyrometer {

Result<ObjectFacts> InProcessIndexer::Inspect(int fd) {
  const Result<ElfFile> elf = ElfFile::Open(fd);
  if (elf) return FactsOf(*elf);
  // Mapped executable and still no ELF file: a JIT's shared memory, for example.
  if (elf.error().code() == ErrorCode::kInvalid) return ObjectFacts();
  return elf.error();
}

Result<SymbolTable> InProcessIndexer::Symbols(int fd, const SymbolTableOptions& options) {
  ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(fd));
  return ReadSymbolTable(elf, options);
}

Result<UnwindTable> InProcessIndexer::Unwind(int fd, const UnwindTableOptions& options) {
  ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(fd));
  return CompileUnwindTable(elf, options);
}

Result<UnwindTable> InProcessIndexer::Unwind(int fd, int debug_fd,
                                             const UnwindTableOptions& options) {
  ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(fd));
  ASSIGN_OR_RETURN(const ElfFile debug_file, ElfFile::Open(debug_fd));
  return CompileUnwindTable(elf, debug_file, options);
}

}  // namespace pyrometer
