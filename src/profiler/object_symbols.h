// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/lifeline.h"
#include "indexer/artifact_store.h"
#include "process/resolved_window.h"
#include "profiler/debug_files.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Which symbols objects have. They are read by the workers of the ArtifactStore: ahead, soon after
// the first sample was in the object, so that its name does not depend on what becomes of the file
// until its window is named; or else when a window needs them.
//
// Thread-safe.
class ObjectSymbols {
 public:
  // Nothing while there is no answer.
  using Answer = std::optional<Result<ArtifactStore::ContentRef>>;

  // So many are read at a time, until they are asked for: of those that a window needs, and of
  // those that one may need. Unwind tables wait for neither for long.
  static constexpr size_t kMostForWindow = 16;
  static constexpr size_t kMostAhead = 4;
  // Debug information, which may take a minute: large files of other owners or devices have a place
  // beside it.
  static constexpr size_t kMostDebugInfoAhead = 1;
  // So many may wait to be read ahead, each with a file held open. Beyond that the window asks.
  static constexpr size_t kMostWaiting = 256;

  // Told of each that was read; on any thread. Must not wait for anything.
  using OnRead = std::function<void(const SampledObject&, const ArtifactStore::ContentRef&)>;

  // Both must outlive this.
  ObjectSymbols(ArtifactStore& store, const Clock& clock, OnRead on_read = nullptr)
      : store_(store), clock_(clock), most_ahead_(kMostAhead), on_read_(std::move(on_read)) {}

  // The symbols have what debug information says of the source: the object's own, or its debug
  // file's. If neither has any the answer is kNotFound. All must outlive this.
  ObjectSymbols(ArtifactStore& store, const Clock& clock, DebugFiles& debug_files)
      : store_(store),
        clock_(clock),
        most_ahead_(kMostDebugInfoAhead),
        debug_files_(&debug_files) {}

  // Whether reading may go well later, that ended with this error.
  static bool MayEndOtherwise(const Error& error);

  // Has them read soon, if nothing is known of them yet.
  void ReadAhead(std::span<const SampledObject> objects);

  // From now on nothing is read ahead that has not been begun.
  void StopReadingAhead();

  // The same, for a window that is about to ask for them, in the place of what the last one wanted.
  // What failed and may go well by now is tried again. REQUIRES: each has a file.
  void ReadForWindow(std::vector<SampledObject> objects);

  // Waits until the object's symbols are read, at most until `until`, and has them read if nobody
  // has. REQUIRES: it has a file.
  Answer Await(const SampledObject& object, MonotonicTime until);

  // Whether they were asked for, answered or not.
  bool IsAsked(const SampledObject& object) const;

  // What is known of them now.
  Answer Find(const SampledObject& object) const;

  // They are to be read again when asked for next.
  void Forget(std::span<const ObjectId> objects);

  // From `when` on nothing more is read, and nobody waits.
  void GiveUpAt(MonotonicTime when);

  // Of objects.
  struct Counters {
    uint64_t read = 0;
    uint64_t read_ahead = 0;  // of these: before a window asked
    uint64_t absent = 0;      // what is looked for is not there
    uint64_t failed = 0;
  };
  Counters counters() const;
  size_t pending() const;  // being read now

 private:
  // Of an object with that info: its id may become another's.
  using Info = std::shared_ptr<const ObjectInfo>;
  struct Known {
    Info info;
    Answer answer;
  };
  struct Question {
    SampledObject of;
    bool is_ahead = false;
  };

  bool IsTooLate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Begin(const SampledObject& object, bool is_ahead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Question> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadMore();
  void Ask(const Question& question);
  void AskWithSources(const SampledObject& object, ArtifactStore::Source source,
                      ArtifactStore::OnAnswer on_answer);
  void Answered(const Question& question, Result<ArtifactStore::ContentRef> answer);
  void Count(const Result<ArtifactStore::ContentRef>& answer, bool is_ahead)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Known* KnownOf(const SampledObject& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer FindLocked(const SampledObject& object) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ArtifactStore& store_;
  const Clock& clock_;
  const size_t most_ahead_;
  const OnRead on_read_{};
  DebugFiles* const debug_files_ = nullptr;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<ObjectId, Known> known_ ABSL_GUARDED_BY(mutex_);
  std::deque<SampledObject> for_window_ ABSL_GUARDED_BY(mutex_);
  std::deque<SampledObject> ahead_ ABSL_GUARDED_BY(mutex_);
  size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;        // being read
  size_t pending_ahead_ ABSL_GUARDED_BY(mutex_) = 0;  // of these
  bool is_reading_more_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ahead_over_ ABSL_GUARDED_BY(mutex_) = false;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime give_up_at_ ABSL_GUARDED_BY(mutex_){UINT64_MAX};
  Lifeline<ObjectSymbols> lifeline_{*this};
};

}  // namespace pyrometer
