// SPDX-License-Identifier: Apache-2.0
#include "tests/names/one_file.h"

#include <fcntl.h>

#include <utility>

#include "base/file.h"

namespace pyrometer {
namespace {

SymbolTableOptions RoomIn(const std::shared_ptr<SpillFile>& spill) {
  return {.spill = spill, .most_spilled = spill->most()};
}

}  // namespace

Result<std::unique_ptr<OneFile>> OneFile::Open(std::shared_ptr<Indexer> indexer,
                                               const std::string& path,
                                               const std::string& debug_path) {
  std::unique_ptr<OneFile> file(new OneFile);
  file->indexer_ = std::move(indexer);
  ASSIGN_OR_RETURN(file->spill_, SpillFile::Open({}));
  ASSIGN_OR_RETURN(file->own_, pyrometer::Open(path, O_RDONLY));
  if (!debug_path.empty()) {
    ASSIGN_OR_RETURN(file->debug_, pyrometer::Open(debug_path, O_RDONLY));
  }
  ASSIGN_OR_RETURN(ObjectFacts facts, file->indexer_->Inspect(file->own_.get()));
  file->description_ = {
      .path = path, .build_id = std::move(facts.build_id), .segments = std::move(facts.segments)};
  return file;
}

Result<void> OneFile::ReadSymbols() {
  ASSIGN_OR_RETURN(Made<SymbolTable> made, indexer_->Symbols(Files(), RoomIn(spill_)));
  symbols_ = std::make_shared<const SymbolTable>(std::move(made.value));
  return {};
}

Result<void> OneFile::ReadSources() {
  ASSIGN_OR_RETURN(Made<SourceMap> made, indexer_->Sources(Files(), RoomIn(spill_)));
  sources_ = std::make_shared<const SourceMap>(std::move(made.value));
  return {};
}

std::optional<ObjectDescription> OneFile::Describe(ObjectId object) {
  if (object != kId) return std::nullopt;
  return description_;
}

SymbolAnswer OneFile::Symbols(ObjectId /*object*/) {
  return {.table = symbols_};
}

SourceAnswer OneFile::Sources(ObjectId /*object*/) {
  return {.map = sources_};
}

}  // namespace pyrometer
