// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "base/lifeline.h"
#include "base/log.h"
#include "base/procfs.h"
#include "indexer/artifact_store.h"
#include "process/process_knowledge.h"
#include "process/resolved_window.h"
#include "profiler/debug_files.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Answers the symbolizer's questions from the window being named. What names functions is read by
// the workers of the ArtifactStore, some ahead of the question; a window waits for all of it
// together for a bounded time, and for source lines for another.
class WindowSources : public ObjectSource, public JitSource {
 public:
  // How long a window waits.
  struct Patience {
    // 5 s are what a file has that does not answer, see ArtifactStore: it costs one window that
    // much, and others nothing.
    std::chrono::nanoseconds symbols = std::chrono::seconds(5);
    // Without lines and inlined calls a window is complete, and later ones have them: so long it
    // waits only that a recording of a few seconds of a large program has them, too.
    std::chrono::nanoseconds sources = std::chrono::seconds(1);
    // Processes write their jitdumps and perf maps themselves, as long as they like. Beyond that
    // none is begun to be read.
    std::chrono::nanoseconds jit = std::chrono::seconds(2);
  };
  // So many tables are read at a time, until they are asked for.
  static constexpr size_t kMostAhead = 16;

  // All but `procfs` must outlive this.
  struct Parts {
    ArtifactStore& store;
    // With which debug files are looked for; null: none are.
    DebugFiles* debug_files = nullptr;
    ProcessKnowledge* processes = nullptr;
    Procfs procfs{};
    // Whether another window waits to be named: then this one waits for no source lines. Null: none
    // does.
    std::function<bool()> is_behind{};
  };
  explicit WindowSources(const Parts& parts) : WindowSources(parts, Patience()) {}
  WindowSources(const Parts& parts, const Patience& patience)
      : parts_(parts), patience_(patience) {}

  // Has `log`, which must outlive this, say why a jitdump could not be read.
  void LogTo(Log& log) { log_ = &log; }

  // Takes over what `resolved` carries, except its samples.
  void Use(ResolvedWindow& resolved);
  // Releases it, which closes the files that are not being read.
  void Clear();

  // From `when` on nothing more is opened or read. Any thread.
  void GiveUpAt(std::chrono::steady_clock::time_point when);

  std::optional<ObjectDescription> Describe(ObjectId object) override;
  SymbolAnswer Symbols(ObjectId object) override;
  SourceAnswer Sources(ObjectId object) override;
  std::vector<ObjectId> TakeImproved() override;
  Result<UniqueFd> OpenPerfMap(ProcessKey process) override;
  Result<PerfMapEnd> ReadPerfMap(int fd, const PerfMapPart& part,
                                 OnPerfMapFunction on_function) override;
  Result<UniqueFd> OpenJitDump(ProcessKey process) override;
  Result<JitDumpEnd> ReadJitDump(ProcessKey process, int fd, const JitDumpPart& part,
                                 OnJitCode on_code) override;
  bool HasTime() override { return left_.jit.count() > 0 && !IsTooLate(); }
  bool HasEnded(ProcessKey process) override { return ended_.contains(process); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class What : uint8_t { kSymbols, kSources };
  using Wanted = std::pair<ObjectId, What>;
  using Answer = Result<ArtifactStore::ContentRef>;
  // What was asked for.
  struct Known {
    std::optional<Answer> answer{};  // nothing: there is none yet
    // A server had a file that the answer is, or will be, made without: the next window asks again.
    bool is_outdated = false;
  };

  bool IsTooLate() const;
  void Forget(ObjectId object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOutdated() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SymbolAnswer WithoutFile(ObjectId object, bool has_build_id);
  void Ask(Wanted wanted);
  void AskStore(Wanted wanted, ArtifactStore::Source source, const FoundDebugFiles& found);
  void AskServer(ObjectId object, const DebugFileCriteria& criteria);
  void AskServerAgain();
  void Served(ObjectId object, DebugFile file);
  DebugFile ServedFor(ObjectId object) const;
  bool IsBetterOneComing(ObjectId object) const;
  void AskAhead();
  void Answered(Wanted wanted, Answer answer);
  std::optional<Answer> Await(Wanted wanted);
  bool TellsNames(Wanted wanted) const;
  bool IsBehind() const;
  template <typename Read>
  auto InJitTime(Read read) -> decltype(read());
  std::optional<Answer> Find(Wanted wanted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Parts parts_;
  const Patience patience_;
  Log* log_ = nullptr;  // null: nobody wants to know
  Patience left_;       // of this window
  decltype(ResolvedWindow::objects) objects_;
  decltype(ResolvedWindow::perf_maps) perf_maps_;
  decltype(ResolvedWindow::jit_dumps) jit_dumps_;
  decltype(ResolvedWindow::ended) ended_;
  std::deque<Wanted> ahead_;                // of objects_: not asked for yet
  absl::flat_hash_set<ObjectId> improved_;  // since TakeImproved()
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Wanted, Known> known_ ABSL_GUARDED_BY(mutex_);
  // Debug files of a server, for objects of windows: null if it has none, nothing if it was asked
  // and has not answered. For these nobody waits: what they tell comes in place of what was known
  // before.
  absl::flat_hash_map<ObjectId, std::optional<DebugFile>> served_ ABSL_GUARDED_BY(mutex_);
  size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  Time give_up_at_ ABSL_GUARDED_BY(mutex_) = Time::max();
  Lifeline<WindowSources> lifeline_{*this};
};

}  // namespace pyrometer
