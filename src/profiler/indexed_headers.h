// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "foreign/indexer.h"
#include "process/object_inspector.h"

namespace pyrometer {

// Headers of newly mapped files, read by the indexer.
class IndexedHeaders : public ObjectInspector {
 public:
  explicit IndexedHeaders(std::shared_ptr<Indexer> indexer) : indexer_(std::move(indexer)) {}
  Result<ObjectFacts> Inspect(int fd) override { return indexer_->Inspect(fd); }

 private:
  const std::shared_ptr<Indexer> indexer_;
};

}  // namespace pyrometer
