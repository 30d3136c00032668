// SPDX-License-Identifier: Apache-2.0
#include "indexer/file_reading.h"

#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "binary/elf_file.h"
#include "binary/object_facts.h"
#include "binary/sections.h"
#include "binary/segments.h"
#include "debuginfo/dwarf_program.h"
#include "debuginfo/dwarf_split_paths.h"
#include "debuginfo/go_program.h"
#include "symbolize/elf_symbols.h"
#include "symbolize/source_map_writer.h"
#include "unwind/function_bounds.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

struct WatchedFiles {
  ElfFile own;
  std::optional<ElfFile> debug;
  std::optional<ElfFile> supplement;
  std::vector<ElfFile> splits;

  const ElfFile* debug_file() const { return debug ? &*debug : nullptr; }
};

Result<WatchedFiles> Watch(FileSources files, ReadingRecorder& reading) {
  ASSIGN_OR_RETURN(ElfFile own, ElfFile::From(reading.Watch(std::move(files.own))));
  WatchedFiles watched{.own = std::move(own), .debug = {}, .supplement = {}, .splits = {}};
  if (files.debug != nullptr) {
    ASSIGN_OR_RETURN(watched.debug, ElfFile::From(reading.Watch(std::move(files.debug))));
  }
  if (files.supplement != nullptr) {
    ASSIGN_OR_RETURN(watched.supplement, ElfFile::From(reading.Watch(std::move(files.supplement))));
  }
  for (std::unique_ptr<ByteSource>& split : files.splits) {
    // One that is none is as good as missing.
    Result<ElfFile> elf = ElfFile::FromAnyType(reading.Watch(std::move(split)));
    if (elf) watched.splits.push_back(*std::move(elf));
  }
  return watched;
}

}  // namespace

std::vector<std::unique_ptr<ByteSource>> FileSources::All() && {
  std::vector<std::unique_ptr<ByteSource>> all;
  for (std::unique_ptr<ByteSource>* file : {&own, &debug, &supplement}) {
    if (*file != nullptr) all.push_back(std::move(*file));
  }
  std::ranges::move(splits, std::back_inserter(all));
  return all;
}

Result<ObjectFacts> InspectFile(std::unique_ptr<ByteSource> file) {
  const Result<ElfFile> elf = ElfFile::From(std::move(file));
  if (elf) return FactsOf(*elf);
  // Mapped executable and still no ELF file: a JIT's shared memory, for example.
  if (elf.error().code() == ErrorCode::kInvalid) return ObjectFacts();
  return elf.error();
}

Result<DebugLinks> ReadLinksOf(std::unique_ptr<ByteSource> file) {
  const Result<ElfFile> elf = ElfFile::From(std::move(file));
  if (elf) {
    ASSIGN_OR_RETURN(DebugLinks links, ReadDebugLinks(*elf));
    if (links.may_be_split) links.splits = ReadSplitPaths(*elf, DebugLinks::kMostSplits);
    return links;
  }
  if (elf.error().code() == ErrorCode::kInvalid) return DebugLinks();
  return elf.error();
}

Result<uint32_t> ChecksumOf(const ByteSource& file) {
  std::vector<std::byte> buffer(size_t{256} << 10);
  uLong checksum = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < file.size();) {
    const auto part = std::span(buffer).first(std::min<uint64_t>(buffer.size(), file.size() - at));
    RETURN_IF_ERROR(file.Read(at, part));
    checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(part.data()),
                       static_cast<uInt>(part.size()));
    at += part.size();
  }
  return static_cast<uint32_t>(checksum);
}

Result<SymbolTableShape> ReadSymbolsOf(FileSources files, ByteWriter& bytes,
                                       ReadingRecorder& reading) {
  ASSIGN_OR_RETURN(const WatchedFiles watched, Watch(std::move(files), reading));
  const ElfFile& elf = watched.own;
  return WriteSymbolTable({.object = elf, .debug = watched.debug_file()}, bytes, [&elf] {
    const std::vector<FunctionBounds> bounds = ReadFunctionBounds(elf);
    UnnamedFunctions unnamed;
    unnamed.reserve(bounds.size());
    for (const auto& [begin, end] : bounds) unnamed.push_back({ElfAddress(begin), ElfAddress(end)});
    return unnamed;
  });
}

Result<void> ReadSourcesOf(FileSources files, ByteWriter& bytes, ReadingRecorder& reading,
                           HelperThread* helper) {
  ASSIGN_OR_RETURN(const WatchedFiles watched, Watch(std::move(files), reading));
  const ElfFile& elf = watched.own;
  ASSIGN_OR_RETURN(const SectionTable sections, SectionTable::Read(elf));
  SourceMapWriter writer(CodeBase(elf.segments()));
  const Result<GoCounts> go = ReadGoProgram(elf, sections, writer);
  if (!go && go.error().code() != ErrorCode::kNotFound) return go.error();
  const Result<DwarfCounts> dwarf =
      ReadDwarf({.object = elf,
                 .debug = watched.debug_file(),
                 .supplement = watched.supplement ? &*watched.supplement : nullptr,
                 .splits = watched.splits},
                {.without_go = go.has_value(), .helper = helper}, writer);
  if (!dwarf && dwarf.error().code() != ErrorCode::kNotFound) return dwarf.error();
  if (go) writer.NoteLost(go->malformed_functions + go->malformed_lines + go->unknown_inlines);
  if (dwarf) writer.NoteLost(dwarf->malformed + dwarf->unsupported + dwarf->missing);
  if (std::move(writer).Write(bytes)) return {};
  return Fail(ErrorCode::kExhausted, "no room for source lines");
}

Result<UnwindTable> CompileTableOf(FileSources files, const UnwindTableOptions& options,
                                   ReadingRecorder& reading) {
  ASSIGN_OR_RETURN(const WatchedFiles watched, Watch(std::move(files), reading));
  if (!watched.debug) return CompileUnwindTable(watched.own, options);
  return CompileUnwindTable(watched.own, *watched.debug, options);
}

Result<std::vector<std::byte>> ReadSome(const ByteSource& file, FileOffset offset, size_t size) {
  const uint64_t at = std::min(offset.value(), file.size());
  std::vector<std::byte> bytes(std::min<uint64_t>(size, file.size() - at));
  RETURN_IF_ERROR(file.Read(at, bytes));
  return bytes;
}

}  // namespace pyrometer
