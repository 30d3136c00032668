// SPDX-License-Identifier: Apache-2.0
#include "indexer/in_process_indexer.h"

#include <memory>
#include <utility>

#include "indexer/file_reading.h"

namespace pyrometer {
namespace {

Result<FileSources> SourcesOf(const FilesToRead& files) {
  FileSources sources;
  ASSIGN_OR_RETURN(sources.own, FileBytes(files.own));
  if (files.debug >= 0) {
    ASSIGN_OR_RETURN(sources.debug, FileBytes(files.debug));
  }
  if (files.supplement >= 0) {
    ASSIGN_OR_RETURN(sources.supplement, FileBytes(files.supplement));
  }
  for (const int split : files.splits) {
    ASSIGN_OR_RETURN(sources.splits.emplace_back(), FileBytes(split));
  }
  return sources;
}

}  // namespace

Result<ObjectFacts> InProcessIndexer::Inspect(int fd) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, FileBytes(fd));
  return InspectFile(std::move(file));
}

Result<DebugLinks> InProcessIndexer::Links(int fd) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, FileBytes(fd));
  return ReadLinksOf(std::move(file));
}

Result<uint32_t> InProcessIndexer::Checksum(int fd) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, FileBytes(fd));
  return ChecksumOf(*file);
}

Result<Made<SymbolTable>> InProcessIndexer::Symbols(const FilesToRead& files,
                                                    const SymbolTableOptions& options) {
  ASSIGN_OR_RETURN(FileSources sources, SourcesOf(files));
  ReadingRecorder recorder(key_);
  std::shared_ptr<SpilledBytes> bytes = RoomFor(options);
  ASSIGN_OR_RETURN(SymbolTableShape shape, ReadSymbolsOf(std::move(sources), *bytes, recorder));
  ASSIGN_OR_RETURN(SymbolTable table, SymbolTable::From(std::move(shape), std::move(bytes)));
  return Made<SymbolTable>{.value = std::move(table), .reading = std::move(recorder).Finish()};
}

Result<Made<SourceMap>> InProcessIndexer::Sources(const FilesToRead& files,
                                                  const SymbolTableOptions& options) {
  ASSIGN_OR_RETURN(FileSources read, SourcesOf(files));
  ReadingRecorder recorder(key_);
  std::shared_ptr<SpilledBytes> bytes = RoomFor(options);
  RETURN_IF_ERROR(ReadSourcesOf(std::move(read), *bytes, recorder));
  ASSIGN_OR_RETURN(SourceMap sources, SourceMap::From(std::move(bytes)));
  return Made<SourceMap>{.value = std::move(sources), .reading = std::move(recorder).Finish()};
}

Result<Made<UnwindTable>> InProcessIndexer::Unwind(const FilesToRead& files,
                                                   const UnwindTableOptions& options) {
  ASSIGN_OR_RETURN(FileSources sources, SourcesOf(files));
  ReadingRecorder recorder(key_);
  ASSIGN_OR_RETURN(UnwindTable table, CompileTableOf(std::move(sources), options, recorder));
  return Made<UnwindTable>{.value = std::move(table), .reading = std::move(recorder).Finish()};
}

Result<bool> InProcessIndexer::Repeats(const FilesToRead& files, const Reading& reading) {
  ASSIGN_OR_RETURN(FileSources sources, SourcesOf(files));
  return pyrometer::Repeats(reading, std::move(sources).All());
}

Result<std::vector<std::byte>> InProcessIndexer::Bytes(int fd, FileOffset offset, size_t size) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, FileBytes(fd));
  return ReadSome(*file, offset, size);
}

Result<PerfMapEnd> InProcessIndexer::PerfMapLines(int fd, const PerfMapPart& part,
                                                  OnPerfMapFunction on_function) {
  return ReadPerfMapLines(fd, part, on_function);
}

Result<JitDumpEnd> InProcessIndexer::JitDumpRecords(int fd, const JitDumpPart& part,
                                                    OnJitCode on_code) {
  return ReadJitDumpRecords(fd, part, on_code);
}

}  // namespace pyrometer
