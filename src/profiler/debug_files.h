// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/lifeline.h"
#include "base/procfs.h"
#include "base/unique_fd.h"
#include "foreign/foreign_files.h"
#include "foreign/indexer.h"
#include "foreign/question_threads.h"
#include "profiler/recently_missed.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What the debug file of an object must agree with.
struct DebugFileCriteria {
  BuildId build_id;
  uint32_t user = 0;  // the owner of the object's file
};

// The host's root directory, for FindInRoot only.
Result<UniqueFd> OpenHostRoot(const Procfs& procfs);

// The separate debug file of an object: at DebugFilePath() in `root`, with the object's build id.
// The file must be regular and belong to root or to the object's owner: otherwise anyone could put
// a file with any build id into a root of his own, map the object there, and mislead us about all
// who have it mapped. Errors: kNotFound; those of ForeignFiles.
Result<UniqueFd> OpenDebugFile(const UniqueFd& root, const DebugFileCriteria& object,
                               ForeignFiles& files, Indexer& indexer);

// Has QuestionThreads look for debug files of objects, and remembers misses for kRetry.
// Thread-safe.
class DebugFiles {
 public:
  static constexpr std::chrono::minutes kRetry{10};
  static constexpr size_t kMostMissed = 16384;  // 0.5 MB
  // For finding it in one root and for opening it; beyond that its file system does not answer.
  static constexpr std::chrono::seconds kMostTime{5};

  // `workers` and `clock` must outlive this.
  struct Parts {
    std::shared_ptr<Indexer> indexer;
    std::shared_ptr<ForeignFiles> files;
    QuestionThreads& workers;
    const Clock& clock;
  };
  // Null: there is none. Called once, perhaps before Find() returns; must not wait for anything.
  using OnFound = std::function<void(std::shared_ptr<const UniqueFd>)>;

  explicit DebugFiles(const Parts& parts) : parts_(parts) {}

  // Looks into one of `roots` after the other.
  void Find(ObjectId object, std::vector<UniqueFd> roots, const DebugFileCriteria& criteria,
            OnFound on_found);

 private:
  struct Search;

  void Try(const std::shared_ptr<Search>& search, size_t root);
  void Tried(const std::shared_ptr<Search>& search, size_t root,
             const std::shared_ptr<const UniqueFd>& found);

  const Parts parts_;
  absl::Mutex mutex_;
  RecentlyMissed missed_ ABSL_GUARDED_BY(mutex_){kRetry, kMostMissed};
  Lifeline<DebugFiles> lifeline_{*this};
};

}  // namespace pyrometer
