// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "base/keyed_digest.h"
#include "foreign/indexer.h"

namespace pyrometer {

// Reads in this process. Immutable: any number of threads may use it.
class InProcessIndexer : public Indexer {
 public:
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
  const KeyedDigest::Key key_ = KeyedDigest::RandomKey();
};

}  // namespace pyrometer
