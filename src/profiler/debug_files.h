// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/unique_fd.h"
#include "indexer/indexer.h"
#include "process/process_knowledge.h"
#include "profiler/recently_missed.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What the debug file of an object must agree with.
struct DebugFileCriteria {
  BuildId build_id;
  uint32_t user = 0;  // the owner of the object's file
};

// Finds the separate debug file of an object: at DebugFilePath() in the first of the directories
// `roots` that has it, with the object's build id. The file must be regular and belong to root or
// to the object's owner: otherwise anyone could put a file with any build id into a root of his
// own, map the object there, and mislead us about all who have it mapped. Errors: kNotFound.
Result<UniqueFd> FindDebugFile(std::span<const UniqueFd> roots, const DebugFileCriteria& object,
                               Indexer& indexer);

// Finds debug files of objects: first in the root of a process that has the object mapped, then in
// the host's root. A miss is remembered for kRetry. Thread-safe.
class DebugFiles {
 public:
  static constexpr std::chrono::minutes kRetry{10};
  static constexpr size_t kMostMissed = 16384;  // 0.5 MB

  DebugFiles(ProcessKnowledge& processes, Indexer& indexer, const Clock& clock, Procfs procfs = {})
      : processes_(processes), indexer_(indexer), procfs_(std::move(procfs)), clock_(clock) {}

  // `file` is the object's own. Errors: kNotFound.
  Result<UniqueFd> Open(ObjectId object, int file);

 private:
  Result<UniqueFd> Find(ObjectId object, int file);

  ProcessKnowledge& processes_;
  Indexer& indexer_;
  const Procfs procfs_;
  const Clock& clock_;
  absl::Mutex mutex_;
  RecentlyMissed missed_ ABSL_GUARDED_BY(mutex_){kRetry, kMostMissed};
};

}  // namespace pyrometer
