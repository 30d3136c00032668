// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/lifeline.h"
#include "foreign/question_threads.h"
#include "indexer/artifact_store.h"
#include "process/process_knowledge.h"
#include "profiler/code_reader.h"
#include "profiler/cold_view.h"
#include "profiler/debug_files.h"
#include "profiler/recently_missed.h"
#include "pyrometer/ids.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// Unwind tables of objects, from the object's own call frame information and, if that leaves out
// much, from its debug file's. They are made when first asked for, by QuestionThreads, and kept by
// the ArtifactStore: objects of one content have one table.
//
// Thread-safe. Nobody waits for a file, except ReadCode() for CodeReader::kWait.
class UnwindTables : public UnwindTableSource {
 public:
  struct Counters {
    uint64_t failed = 0;   // objects: not ELF, or the file could not be read, or does not answer
    uint64_t pending = 0;  // objects now, whose table is being made
  };

  // After so long a file that could not be read is tried again.
  static constexpr std::chrono::minutes kRetry{1};
  static constexpr size_t kMostFailed = 16384;

  // All must outlive this.
  struct Parts {
    ProcessKnowledge& processes;
    std::shared_ptr<Indexer> indexer;
    QuestionThreads& workers;
    ArtifactStore& store;
    DebugFiles& debug_files;
    const Clock& clock;
  };

  // `on_answer` is called, on any thread, when a table that was not there is, or turns out not to
  // come. It must not call back.
  UnwindTables(const Parts& parts, std::function<void()> on_answer);

  std::shared_ptr<const UnwindTable> Of(ObjectId object) override;
  bool Has(ObjectId object) const override;
  bool IsPending(ObjectId object) const override;
  Code ReadCode(ObjectId object, ElfAddress address, std::span<std::byte> out) override {
    return code_.Read(object, address, out);
  }
  void CloseFile() override { code_.CloseFile(); }

  // Forgets which tables these have. They may be asked for again. Those that are being made stay.
  void Forget(std::span<const ObjectId> objects);

  Counters counters() const;

 private:
  // What is known of an object's table: it is one of these, or pending.
  struct Known {
    ArtifactStore::ContentRef content;
    std::shared_ptr<const UnwindTable> own;  // shared with nobody: the vDSO's, an empty one
    bool is_pending() const { return content == nullptr && own == nullptr; }
  };
  // An object's files while its table is being made.
  struct Files {
    ArtifactStore::Source source;
    std::shared_ptr<DebugFiles::Search> search;
  };

  void Begin(ObjectId object);
  Result<std::shared_ptr<Files>> Open(ObjectId object);
  void OwnIsMade(ObjectId object, const std::shared_ptr<Files>& files,
                 Result<ArtifactStore::ContentRef> own);
  void AskForBoth(ObjectId object, ArtifactStore::Source source,
                  const Result<ArtifactStore::ContentRef>& own, ArtifactStore::File debug_file);
  void IsMade(ObjectId object, const Result<ArtifactStore::ContentRef>& content);
  void IsMade(ObjectId object, std::shared_ptr<const UnwindTable> own);
  void Failed(ObjectId object, const Error& error);
  void Answer(ObjectId object, Known known);

  const Parts parts_;
  const std::function<void()> on_answer_;
  CodeReader code_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<ObjectId, Known> known_ ABSL_GUARDED_BY(mutex_);
  RecentlyMissed failed_ ABSL_GUARDED_BY(mutex_){kRetry, kMostFailed};
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  Lifeline<UnwindTables> lifeline_{*this};
};

}  // namespace pyrometer
