// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/file_workers.h"
#include "base/foreign_files.h"
#include "base/lifeline.h"
#include "base/procfs.h"
#include "base/unique_fd.h"
#include "debuginfod/debuginfod_client.h"
#include "indexer/indexer.h"
#include "process/process_knowledge.h"
#include "profiler/recently_missed.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

using DebugFile = std::shared_ptr<const UniqueFd>;

// An object whose debug file is looked for, and what that must agree with.
struct DebugFileCriteria {
  BuildId build_id{};
  uint32_t user = 0;   // the owner of the object's file
  std::string path{};  // of the object, as it is mapped; "": it is not looked for beside it
  DebugFile own{};     // the object's file, for what it says of others; null: it is not asked
};

// What was found: null if there is none.
struct FoundDebugFiles {
  DebugFile debug;
  DebugFile supplement;             // what dwz has moved parts of `debug`, or of the object, to
  std::vector<DebugFile> splits{};  // with split units: a package, or loose ones

  bool empty() const { return debug == nullptr && supplement == nullptr && splits.empty(); }
};

// The host's root directory, for OpenInRoot only.
Result<UniqueFd> OpenHostRoot(const Procfs& procfs);

// Where an object's debug file may lie: the root directory of a process that has the object mapped,
// then the host's.
std::vector<UniqueFd> RootsOf(ObjectId object, ProcessKnowledge& processes, const Procfs& procfs);

// The separate debug file of an object in `root`: at DebugFilePath(), with the object's build id,
// else by the name that the object has for it, with that build id or checksum: beside the object,
// in ".debug" there, and in /usr/lib/debug at the object's path. A package of split units (.dwp)
// lies beside the object; where there is none, those that are loose (.dwo) are where the compiler
// put them.
// The file must be regular and belong to root or to the object's owner: otherwise anyone could put
// a file with any build id into a root of his own, map the object there, and mislead us about all
// who have it mapped. Errors: kNotFound; those of ForeignFiles.
Result<FoundDebugFiles> OpenDebugFiles(const UniqueFd& root, const DebugFileCriteria& object,
                                       ForeignFiles& files, Indexer& indexer);

// Has FileWorkers look for debug files of objects, and remembers misses for kRetry. Thread-safe.
class DebugFiles {
 public:
  static constexpr std::chrono::minutes kRetry = DebuginfodClient::kRetry;
  static constexpr size_t kMostMissed = 16384;  // 0.5 MB
  // For finding it in one root and for opening it; beyond that its file system does not answer.
  static constexpr std::chrono::seconds kMostTime{5};

  // All must outlive this. `server`: asked for what is in no root; null: nobody is.
  struct Parts {
    std::shared_ptr<Indexer> indexer;
    std::shared_ptr<ForeignFiles> files;
    FileWorkers& workers;
    const Clock& clock;
    DebuginfodClient* server = nullptr;
  };
  // Called once, perhaps before Find() returns; must not wait for anything.
  using OnFound = std::function<void(FoundDebugFiles)>;

  explicit DebugFiles(const Parts& parts) : parts_(parts) {}

  // Looks into one of `roots` after the other, then asks the server.
  void Find(ObjectId object, std::vector<UniqueFd> roots, const DebugFileCriteria& criteria,
            OnFound on_found);
  // The same without asking a server, which may take minutes.
  void FindHere(ObjectId object, std::vector<UniqueFd> roots, const DebugFileCriteria& criteria,
                OnFound on_found);
  // Asks only the server.
  void FindThere(ObjectId object, const DebugFileCriteria& criteria, OnFound on_found);
  bool has_server() const { return parts_.server != nullptr; }
  // Whether a search for it found nothing in the last kRetry: until then another one is in vain.
  bool WasMissed(ObjectId object);

 private:
  struct Search;

  void Begin(Search search);
  void Try(const std::shared_ptr<Search>& search, size_t root);
  void Tried(const std::shared_ptr<Search>& search, size_t root, const FoundDebugFiles& found);
  void AskServer(const std::shared_ptr<Search>& search);
  void Served(const std::shared_ptr<Search>& search, const DebugFile& file);
  void Missed(const std::shared_ptr<Search>& search);

  const Parts parts_;
  absl::Mutex mutex_;
  RecentlyMissed missed_ ABSL_GUARDED_BY(mutex_){kRetry, kMostMissed};
  Lifeline<DebugFiles> lifeline_{*this};
};

}  // namespace pyrometer
