// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/keyed_digest.h"
#include "indexer/indexer.h"

namespace pyrometer {

// Reads in this process. Immutable: any number of threads may use it.
class InProcessIndexer : public Indexer {
 public:
  Result<ObjectFacts> Inspect(int fd) override;
  Result<Made<SymbolTable>> Symbols(int fd, const SymbolTableOptions& options) override;
  Result<Made<UnwindTable>> Unwind(const FilesToRead& files,
                                   const UnwindTableOptions& options) override;
  Result<bool> Repeats(const FilesToRead& files, const Reading& reading) override;

 private:
  const KeyedDigest::Key key_ = KeyedDigest::RandomKey();
};

}  // namespace pyrometer
