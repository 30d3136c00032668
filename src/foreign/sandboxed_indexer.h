// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "foreign/indexer.h"
#include "foreign/reader_answers.h"
#include "foreign/reader_pool.h"

namespace pyrometer {

// Has readers read, and believes them no more than it must. Any number of threads may use it.
// Errors beyond those of Indexer: kIo if a reader takes longer than it may, or none can be had,
// since others have all memory for instance; kInternal if it dies; kExhausted if it takes more
// memory than it may, but kMalformed for headers and code.
class SandboxedIndexer : public Indexer {
 public:
  explicit SandboxedIndexer(std::shared_ptr<ReaderPool> readers) : readers_(std::move(readers)) {}

  Result<ObjectFacts> Inspect(int fd) override;
  Result<DebugLinks> Links(int fd) override;
  Result<uint32_t> Checksum(int fd) override;
  Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                    const SymbolTableOptions& options) override;
  Result<Made<UnwindTable>> Unwind(const FilesToRead& files,
                                   const UnwindTableOptions& options) override;
  Result<std::vector<std::byte>> ReadCode(int fd, uint64_t offset) override;
  Result<std::optional<PerfMapFunction>> PerfMapLines(int fd, const PerfMapPart& part,
                                                      std::chrono::nanoseconds at_most,
                                                      PerfMapSink sink) override;
  Result<bool> JitDumpRecords(int fd, const JitDumpPart& part, std::chrono::nanoseconds at_most,
                              JitDumpSink sink) override;
  Result<bool> Repeats(const FilesToRead& files, const Reading& reading) override;

 private:
  template <typename T>
  using Receiver = Result<T> (*)(AnswerMessages&);
  template <typename T>
  Result<T> AskHeaders(ReaderTask::What what, int fd, Receiver<T> receive);

  // Takes no longer than reading such a file may, and no longer than `at_most`.
  Result<std::unique_ptr<ReaderPool::Task>> Begin(
      ReaderTask::What what, const FilesToRead& files, std::stop_token stop,
      std::span<const std::byte> value = {},
      std::chrono::nanoseconds at_most = std::chrono::nanoseconds::max());

  const std::shared_ptr<ReaderPool> readers_;
};

}  // namespace pyrometer
