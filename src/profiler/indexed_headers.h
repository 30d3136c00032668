// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "indexer/indexer.h"
#include "process/object_inspector.h"

namespace pyrometer {

// Headers of newly mapped files, read by the indexer.
class IndexedHeaders : public ObjectInspector {
 public:
  explicit IndexedHeaders(Indexer& indexer) : indexer_(indexer) {}
  Result<ObjectFacts> Inspect(int fd) override { return indexer_.Inspect(fd); }

 private:
  Indexer& indexer_;
};

}  // namespace pyrometer
