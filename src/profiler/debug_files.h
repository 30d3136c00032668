// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/lifeline.h"
#include "base/procfs.h"
#include "base/unique_fd.h"
#include "foreign/foreign_files.h"
#include "foreign/indexer.h"
#include "foreign/question_threads.h"
#include "process/process_knowledge.h"
#include "profiler/recently_missed.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The host's root directory, for FindInRoot only.
Result<UniqueFd> OpenHostRoot(const Procfs& procfs);

// Looks for the separate debug files of objects, by QuestionThreads: below
// /usr/lib/debug/.build-id in the root of a process that has the object mapped, then in the host's;
// then where its .gnu_debuglink leads to, in both, but in the host's only below /usr/lib/debug: a
// stranger chooses that path. An object that has its debug information itself has no debug file.
//
// What is found has the object's build id. Of an object without one, it has the checksum that the
// link has. The file must be regular and belong to root or to the
// object's owner: otherwise anyone could put a file with any build id into a root of his own, map
// the object there, and mislead us about all who have it mapped. So it is with the alternate file
// to which debug information refers, by its build id or by its name; its build id tells.
//
// Remembers misses for kRetry. Thread-safe.
class DebugFiles {
 public:
  using File = std::shared_ptr<const UniqueFd>;

  static constexpr std::chrono::minutes kRetry{5};
  static constexpr size_t kMostMissed = 16384;  // 0.5 MB
  // For each look-up and for opening what was found; beyond that its file system does not answer.
  static constexpr std::chrono::seconds kMostTime{5};

  // All but `procfs` must outlive this.
  struct Parts {
    ProcessKnowledge& processes;
    std::shared_ptr<Indexer> indexer;
    std::shared_ptr<ForeignFiles> files;
    QuestionThreads& workers;
    const Clock& clock;
    Procfs procfs{};  // where the host's root is
  };
  // An object, and the directories below which its debug file may lie.
  struct Search;
  // Where the object's debug information is.
  struct Found {
    bool is_own = false;
    File debug{};      // null: there is no debug file
    File alternate{};  // that the debug information refers to (dwz); null: none
  };
  // Called once, perhaps before Find() returns; must not wait for anything.
  using OnFound = std::function<void(Found)>;

  explicit DebugFiles(const Parts& parts) : parts_(parts) {}

  // To be called while a process has the object mapped: that may end before the search begins.
  // Errors: those of OwnerOf().
  Result<std::shared_ptr<Search>> Prepare(ObjectId object, const ObjectInfo& info, File own);
  void Find(const std::shared_ptr<Search>& search, OnFound on_found);

 private:
  void Next(const std::shared_ptr<Search>& search);
  void GoOnWithout(const std::shared_ptr<Search>& search, size_t root);
  void AskLinks(const std::shared_ptr<Search>& search);
  void Missed(const std::shared_ptr<Search>& search);
  static void Tell(Search& search, Found found);

  const Parts parts_;
  absl::Mutex mutex_;
  RecentlyMissed missed_ ABSL_GUARDED_BY(mutex_){kRetry, kMostMissed};
  Lifeline<DebugFiles> lifeline_{*this};
};

}  // namespace pyrometer
