// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/procfs.h"
#include "process/process_knowledge.h"
#include "process/resolved_window.h"
#include "profiler/debug_files.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Which files windows had, by what names their content: for those who want to read one later. Keeps
// no file open. Of several objects of one build id the first counts, until its file is closed.
// Thread-safe.
class SeenObjects {
 public:
  static constexpr size_t kMost = 8192;
  // For looking for a debug file.
  static constexpr std::chrono::nanoseconds kMostTime = 6 * DebugFiles::kMostTime;

  // All of it outlives this.
  struct Parts {
    ProcessKnowledge& processes;
    DebugFiles& debug_files;
    Procfs procfs;  // leads to the host's root
  };
  explicit SeenObjects(const Parts& parts) : parts_(parts) {}

  void Add(const ResolvedWindow& window);

  // What tells the names of the object's functions: its debug file, or else its own if that has
  // more than it needs to run; see DebugFiles for whose debug files count. Null: it was not seen of
  // late, its file is closed, or there is none. Waits until `stop` or for kMostTime.
  ObjectFile FindNames(const BuildId& build_id, const FileHash& hash, const std::stop_token& stop);

 private:
  using Content = std::pair<BuildId, FileHash>;  // one of them is empty
  struct Seen {
    ObjectId object;
    std::weak_ptr<const UniqueFd> file;
    bool tells_names = false;
  };

  std::optional<Seen> Find(const Content& content) const;
  ObjectFile FindDebugFile(const Seen& seen, const ObjectFile& own, const BuildId& build_id,
                           const std::stop_token& stop);

  const Parts parts_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Content, Seen> seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
