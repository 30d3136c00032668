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
  uint32_t user = 0;  // whom the object's file belongs to
};

// The separate debug file of an object in the first of `roots`, directories, that has it: at
// DebugFilePath(), with the object's build id. Only a regular file that belongs to root or to the
// object's user: anyone can make up a root with a file of any build id in it, and map the object
// there, to mislead us about the others that have it mapped. Errors: kNotFound.
Result<UniqueFd> FindDebugFile(std::span<const UniqueFd> roots, const DebugFileCriteria& object,
                               Indexer& indexer);

// Finds debug files of objects in the root of a process that has the object mapped, then in the
// host's. What was not found is looked for again after kRetry. Thread-safe.
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
