// SPDX-License-Identifier: Apache-2.0
#include "foreign/in_process_indexer.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "binary/elf_file.h"
#include "binary/object_facts.h"
#include "symbolize/elf_symbols.h"
#include "unwind/function_bounds.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

Result<ElfFile> Open(int fd, ReadingRecorder& recorder) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> bytes, recorder.Open(fd));
  return ElfFile::From(std::move(bytes));
}

Result<UnwindTable> Compile(const FilesToRead& files, const UnwindTableOptions& options,
                            ReadingRecorder& recorder) {
  ASSIGN_OR_RETURN(const ElfFile elf, Open(files.own, recorder));
  if (files.debug < 0) return CompileUnwindTable(elf, options);
  ASSIGN_OR_RETURN(const ElfFile debug_file, Open(files.debug, recorder));
  return CompileUnwindTable(elf, debug_file, options);
}

Result<SymbolTable> ReadSymbols(const FilesToRead& files, const SymbolTableOptions& options,
                                ReadingRecorder& recorder) {
  ASSIGN_OR_RETURN(const ElfFile elf, Open(files.own, recorder));
  std::optional<ElfFile> debug_file;
  if (files.debug >= 0) {
    ASSIGN_OR_RETURN(debug_file, Open(files.debug, recorder));
  }
  std::optional<ElfFile> alternate;
  if (files.alternate >= 0) {
    ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> bytes, recorder.Open(files.alternate));
    // Only some names are missing without it.
    if (Result<ElfFile> shared = ElfFile::FromShared(std::move(bytes)))
      alternate = *std::move(shared);
  }
  const auto unnamed_functions = [&elf] {
    const std::vector<FunctionBounds> bounds = ReadFunctionBounds(elf);
    UnnamedFunctions unnamed;
    unnamed.reserve(bounds.size());
    for (const auto& [begin, end] : bounds) unnamed.push_back({ElfAddress(begin), ElfAddress(end)});
    return unnamed;
  };
  return ReadSymbolTable(elf, options, unnamed_functions,
                         {.debug = debug_file ? &*debug_file : nullptr,
                          .alternate = alternate ? &*alternate : nullptr});
}

}  // namespace

Result<ObjectFacts> InProcessIndexer::Inspect(int fd) {
  const Result<ElfFile> elf = ElfFile::Open(fd);
  if (elf) return FactsOf(*elf);
  // Mapped executable and still no ELF file: a JIT's shared memory, for example.
  if (elf.error().code() == ErrorCode::kInvalid) return ObjectFacts();
  return elf.error();
}

Result<DebugLinks> InProcessIndexer::Links(int fd) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> bytes, FileBytes(fd));
  ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::FromShared(std::move(bytes)));
  return ReadDebugLinks(elf);
}

Result<uint32_t> InProcessIndexer::Checksum(int fd) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, FileBytes(fd));
  return ChecksumOf(*file);
}

Result<Made<SymbolTable>> InProcessIndexer::Symbols(const FilesToRead& files,
                                                    const SymbolTableOptions& options) {
  ReadingRecorder recorder(key_);
  ASSIGN_OR_RETURN(SymbolTable symbols, ReadSymbols(files, options, recorder));
  return Made<SymbolTable>{.value = std::move(symbols), .reading = std::move(recorder).Finish()};
}

Result<Made<UnwindTable>> InProcessIndexer::Unwind(const FilesToRead& files,
                                                   const UnwindTableOptions& options) {
  ReadingRecorder recorder(key_);
  ASSIGN_OR_RETURN(UnwindTable table, Compile(files, options, recorder));
  return Made<UnwindTable>{.value = std::move(table), .reading = std::move(recorder).Finish()};
}

Result<std::vector<std::byte>> InProcessIndexer::ReadCode(int fd, uint64_t offset) {
  std::vector<std::byte> bytes(kMostOfCode);
  const ssize_t size = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (size < 0) return SystemError(errno, "reading code");
  bytes.resize(static_cast<size_t>(size));
  return bytes;
}

Result<std::optional<PerfMapFunction>> InProcessIndexer::PerfMapLines(
    int fd, const PerfMapPart& part, std::chrono::nanoseconds /*at_most*/, PerfMapSink sink) {
  return DirectPerfMapReader().Read(fd, part, sink);
}

Result<bool> InProcessIndexer::JitDumpRecords(int fd, const JitDumpPart& part,
                                              std::chrono::nanoseconds /*at_most*/,
                                              JitDumpSink sink) {
  return DirectJitDumpReader().Read(fd, part, sink);
}

Result<bool> InProcessIndexer::Repeats(const FilesToRead& files, const Reading& reading) {
  std::vector<int> all = {files.own, files.debug, files.alternate};
  std::erase_if(all, [](int fd) { return fd < 0; });
  return pyrometer::Repeats(reading, all, key_);
}

}  // namespace pyrometer
