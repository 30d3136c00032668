// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/keyed_digest.h"
#include "indexer/indexer.h"

namespace pyrometer {

// Reads in this process. Immutable: any number of threads may use it.
class InProcessIndexer : public Indexer {
 public:
  Result<ObjectFacts> Inspect(int fd) override;
  Result<DebugLinks> Links(int fd) override;
  Result<uint32_t> Checksum(int fd) override;
  Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                    const SymbolTableOptions& options) override;
  Result<Made<SourceMap>> Sources(const FilesToRead& files,
                                  const SymbolTableOptions& options) override;
  Result<Made<UnwindTable>> Unwind(const FilesToRead& files,
                                   const UnwindTableOptions& options) override;
  Result<bool> Repeats(const FilesToRead& files, const Reading& reading) override;
  Result<std::vector<std::byte>> Bytes(int fd, FileOffset offset, size_t size) override;
  Result<PerfMapEnd> PerfMapLines(int fd, const PerfMapPart& part,
                                  OnPerfMapFunction on_function) override;
  Result<JitDumpEnd> JitDumpRecords(int fd, const JitDumpPart& part, OnJitCode on_code) override;

 private:
  const KeyedDigest::Key key_ = KeyedDigest::RandomKey();
};

}  // namespace pyrometer
