// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "indexer/indexer.h"

namespace pyrometer {

// Reads in this process. Stateless: any number of threads may use it.
class InProcessIndexer : public Indexer {
 public:
  Result<ObjectFacts> Inspect(int fd) override;
  Result<SymbolTable> Symbols(int fd, const SymbolTableOptions& options) override;
  Result<UnwindTable> Unwind(int fd, const UnwindTableOptions& options) override;
  Result<UnwindTable> Unwind(int fd, int debug_fd, const UnwindTableOptions& options) override;
};

}  // namespace pyrometer
