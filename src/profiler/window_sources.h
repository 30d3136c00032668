// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "foreign/indexer.h"
#include "indexer/artifact_store.h"
#include "process/resolved_window.h"
#include "profiler/object_symbols.h"
#include "profiler/remembered_frames.h"
#include "pyrometer/ids.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Answers the symbolizer's questions from the window being named. A window waits for the symbols
// that it needs, all together, for a bounded time.
class WindowSources : public ObjectSource, public PerfMapSource, public JitDumpSource {
 public:
  // A window waits so long for symbols. 5 s are what a file has that does not answer, see
  // ArtifactStore: it costs one window that much, and others nothing.
  static constexpr std::chrono::seconds kMostWaiting{5};

  // Reading perf maps and jitdumps takes so long: all of a window, and one of them.
  static constexpr std::chrono::seconds kMostOfJitNames{5};
  static constexpr std::chrono::seconds kMostOfOneFile{2};

  // For debug information it waits shorter: there are names without it, and a later window has it.
  // It waits for what no window has waited for before.
  static constexpr std::chrono::seconds kMostWaitingForSources{2};
  // What could not be read of that, but may be another time, is asked for again after so many
  // windows, and so often.
  static constexpr uint32_t kRetryWindows = 60;
  static constexpr uint32_t kMostRetries = 3;
  // So many files are read for that at a time.
  static constexpr size_t kMostPending = 2;

  struct Options {
    std::chrono::nanoseconds most_waiting = kMostWaiting;
    std::chrono::nanoseconds most_waiting_for_sources = kMostWaitingForSources;
  };

  // All must outlive this.
  struct Parts {
    ArtifactStore& store;
    ObjectSymbols& symbols;
    ObjectSymbols* debug_info;         // null: it is not wanted
    std::shared_ptr<Indexer> indexer;  // reads perf maps and jitdumps
    const Clock& clock;
  };

  explicit WindowSources(const Parts& parts) : WindowSources(parts, Options()) {}
  WindowSources(const Parts& parts, const Options& options)
      : store_(parts.store),
        symbols_(parts.symbols),
        debug_info_(parts.debug_info),
        indexer_(parts.indexer),
        clock_(parts.clock),
        options_(options) {}

  // Takes over what `resolved` carries, except its samples.
  void Use(ResolvedWindow& resolved);
  // Releases it, which closes the files that are not being read.
  void Clear();

  // Of the window in use.
  const decltype(ResolvedWindow::objects)& objects() const { return objects_; }
  const RememberedFrames::JitNames& jit_names() const { return jit_names_; }

  // From `when` on nothing more is opened or read. Any thread.
  void GiveUpAt(MonotonicTime when);

  std::optional<ObjectDescription> Describe(ObjectId object) override;
  SymbolAnswer Symbols(ObjectId object, DebugInfo debug_info) override;
  Result<UniqueFd> Open(ProcessKey process) override;
  // Errors: those of Indexer; kIo, too, if no time is left.
  Result<std::optional<PerfMapFunction>> Read(int fd, const PerfMapPart& part,
                                              PerfMapSink sink) override;
  std::vector<JitDumpSource::Use> DumpsOf(ProcessKey process) override;
  Result<UniqueFd> OpenDump(File file) override;
  Result<bool> Read(int fd, const JitDumpPart& part, JitDumpSink sink) override;
  // Objects of this window whose debug information has not been read yet, or not been found.
  size_t without_debug_info() const { return without_debug_info_.size(); }
  bool HasEnded(ProcessKey process) override { return ended_.contains(process); }
  std::vector<ProcessKey> InheritsFrom(ProcessKey process) override;

 private:
  SymbolAnswer WithoutFile(const SampledObject& object);
  SymbolAnswer WithSources(const SampledObject& object, std::shared_ptr<const SymbolTable> symbols);
  ObjectSymbols::Answer Await(const SampledObject& object);
  ObjectSymbols::Answer AwaitSources(const SampledObject& object);
  std::shared_ptr<const SymbolTable> TableOf(const ObjectSymbols::Answer& answer);
  bool IsTooLate() const;
  template <typename Question>
  auto ReadJitNames(Question question) -> decltype(question(std::chrono::nanoseconds()));

  ArtifactStore& store_;
  ObjectSymbols& symbols_;
  ObjectSymbols* const debug_info_;
  const std::shared_ptr<Indexer> indexer_;
  const Clock& clock_;
  const Options options_;
  std::chrono::nanoseconds waited_{};              // for this window's symbols
  std::chrono::nanoseconds waited_for_sources_{};  // for its debug information
  // Objects whose debug information was waited for, and how often it was asked for again.
  absl::flat_hash_map<ObjectId, uint32_t> waited_for_;
  absl::flat_hash_set<ObjectId> without_debug_info_;  // in this window
  std::chrono::nanoseconds in_jit_names_{};           // for this window's perf maps and jitdumps
  decltype(ResolvedWindow::objects) objects_;
  RememberedFrames::JitNames jit_names_;
  absl::flat_hash_map<File, std::shared_ptr<const JitDumpFile>> dumps_;
  decltype(ResolvedWindow::ended) ended_;
  mutable absl::Mutex mutex_;
  MonotonicTime give_up_at_ ABSL_GUARDED_BY(mutex_){UINT64_MAX};
};

}  // namespace pyrometer
