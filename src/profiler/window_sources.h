// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/lifeline.h"
#include "foreign/indexer.h"
#include "indexer/artifact_store.h"
#include "process/resolved_window.h"
#include "pyrometer/ids.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Answers the symbolizer's questions from the window being named. Symbol tables are read by the
// workers of the ArtifactStore, some ahead of the question; a window waits for all of them together
// for a bounded time.
class WindowSources : public ObjectSource, public PerfMapSource {
 public:
  // A window waits so long for symbols. 5 s are what a file has that does not answer, see
  // ArtifactStore: it costs one window that much, and others nothing.
  static constexpr std::chrono::seconds kMostWaiting{5};
  // So many tables are read at a time, until they are asked for.
  static constexpr size_t kMostAhead = 16;

  // Reading perf maps takes so long: all of a window, and one of them.
  static constexpr std::chrono::seconds kMostOfPerfMaps{5};
  static constexpr std::chrono::seconds kMostOfPerfMap{2};

  // `store` and `clock` must outlive this. `indexer` reads perf maps.
  WindowSources(ArtifactStore& store, std::shared_ptr<Indexer> indexer, const Clock& clock,
                std::chrono::nanoseconds most_waiting = kMostWaiting)
      : store_(store), indexer_(std::move(indexer)), clock_(clock), most_waiting_(most_waiting) {}

  // Takes over what `resolved` carries, except its samples.
  void Use(ResolvedWindow& resolved);
  // Releases it, which closes the files that are not being read.
  void Clear();

  // From `when` on nothing more is opened or read. Any thread.
  void GiveUpAt(MonotonicTime when);

  std::optional<ObjectDescription> Describe(ObjectId object) override;
  SymbolAnswer Symbols(ObjectId object) override;
  Result<UniqueFd> Open(ProcessKey process) override;
  // Errors: those of Indexer; kIo, too, if no time is left.
  Result<std::optional<PerfMapFunction>> Read(int fd, const PerfMapPart& part,
                                              PerfMapSink sink) override;
  bool HasEnded(ProcessKey process) override { return ended_.contains(process); }

 private:
  // Of an object that was asked for: the answer, nothing while there is none.
  using Known = std::optional<Result<ArtifactStore::ContentRef>>;

  bool IsTooLate() const;
  void Forget(ObjectId object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SymbolAnswer WithoutFile(ObjectId object, bool has_build_id);
  void Ask(ObjectId object);
  void AskAhead();
  void Answered(ObjectId object, Result<ArtifactStore::ContentRef> answer);
  Known Await(ObjectId object);
  Known Find(ObjectId object) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ArtifactStore& store_;
  const std::shared_ptr<Indexer> indexer_;
  const Clock& clock_;
  const std::chrono::nanoseconds most_waiting_;
  std::chrono::nanoseconds waited_{};        // for this window's symbols
  std::chrono::nanoseconds in_perf_maps_{};  // for this window's perf maps
  decltype(ResolvedWindow::objects) objects_;
  decltype(ResolvedWindow::perf_maps) perf_maps_;
  decltype(ResolvedWindow::ended) ended_;
  std::deque<ObjectId> ahead_;  // of objects_: not asked for yet
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<ObjectId, Known> known_ ABSL_GUARDED_BY(mutex_);
  size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  MonotonicTime give_up_at_ ABSL_GUARDED_BY(mutex_){UINT64_MAX};
  Lifeline<WindowSources> lifeline_{*this};
};

}  // namespace pyrometer
