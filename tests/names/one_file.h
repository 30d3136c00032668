// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/spill_file.h"
#include "base/unique_fd.h"
#include "indexer/indexer.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_sources.h"

namespace pyrometer {

// A file as the only object there is, read when told to, by the product's own indexer.
class OneFile : public ObjectSource {
 public:
  static constexpr ObjectId kId{1};

  // `debug_path`: of its separate debug file; "": none. Errors: those of opening and reading them.
  static Result<std::unique_ptr<OneFile>> Open(std::shared_ptr<Indexer> indexer,
                                               const std::string& path,
                                               const std::string& debug_path);

  // Two tiers, as the profiler has them: symbols at once, source lines later.
  Result<void> ReadSymbols();
  Result<void> ReadSources();

  // Empty until they are read.
  const SymbolTable& symbols() const { return *symbols_; }
  const SourceMap& sources() const { return *sources_; }

  std::optional<ObjectDescription> Describe(ObjectId object) override;
  SymbolAnswer Symbols(ObjectId object) override;
  SourceAnswer Sources(ObjectId object) override;

 private:
  OneFile() = default;

  FilesToRead Files() const { return {.own = own_.get(), .debug = debug_.get()}; }

  std::shared_ptr<Indexer> indexer_;
  std::shared_ptr<SpillFile> spill_;
  UniqueFd own_;
  UniqueFd debug_;
  ObjectDescription description_;
  std::shared_ptr<const SymbolTable> symbols_ = std::make_shared<SymbolTable>();
  std::shared_ptr<const SourceMap> sources_ = std::make_shared<SourceMap>();
};

}  // namespace pyrometer
