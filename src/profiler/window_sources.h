// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "indexer/indexer.h"
#include "process/resolved_window.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Answers the symbolizer's questions from the window being named.
class WindowSources : public ObjectSource, public PerfMapSource {
 public:
  // Symbol tables are kept as `options` say.
  explicit WindowSources(Indexer& indexer, SymbolTableOptions options = {})
      : indexer_(indexer), options_(std::move(options)) {}

  // Takes over what `resolved` carries, except its samples.
  void Use(ResolvedWindow& resolved);
  // Releases it, which closes the files.
  void Clear();

  // From `when` on nothing more is opened or read. Any thread.
  void GiveUpAt(std::chrono::steady_clock::time_point when) { give_up_at_ = when; }

  std::optional<ObjectDescription> Describe(ObjectId object) override;
  Result<SymbolTable> Symbols(ObjectId object) override;
  Result<UniqueFd> Open(ProcessKey process) override;
  bool HasEnded(ProcessKey process) override { return ended_.contains(process); }

 private:
  bool IsTooLate() const { return std::chrono::steady_clock::now() >= give_up_at_.load(); }

  Indexer& indexer_;
  const SymbolTableOptions options_;
  std::atomic<std::chrono::steady_clock::time_point> give_up_at_ =
      std::chrono::steady_clock::time_point::max();
  decltype(ResolvedWindow::objects) objects_;
  decltype(ResolvedWindow::perf_maps) perf_maps_;
  decltype(ResolvedWindow::ended) ended_;
};

}  // namespace pyrometer
