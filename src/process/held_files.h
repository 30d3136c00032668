// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/file_identity.h"
#include "base/unique_fd.h"
#include "foreign/foreign_files.h"
#include "process/file_inspections.h"
#include "process/object_info.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Open files of objects, so that deleted files and those of ended processes stay readable. Beyond
// the budget one of whoever owns most of them is released (AccountOf()), the least recently used:
// so nobody who has a great many mapped keeps out those of others. A file that others share stays
// open until they release it too; in all there are never more than twice the budget.
// Thread-compatible; files may be released on any thread.
class HeldFiles {
 public:
  explicit HeldFiles(size_t budget) : budget_(budget) {}

  // `file` is `path`, or a copy of it. Closes it at once if too many files that are no longer held
  // here are still shared.
  void Hold(ObjectId object, OpenedFile file, PathFd path);

  bool is_full() const { return *open_ >= 2 * budget_; }

  bool Holds(ObjectId object) const { return by_object_.contains(object); }

  // True if the file is held and has not been written to since it was `identity`.
  bool IsUnchanged(ObjectId object, const FileIdentity& identity) const;

  // Null if it is not held. Counts as use.
  ObjectFile Find(ObjectId object);

  // Releases all files that are not `in_use`, and returns which. (An open file keeps its disk space
  // after deletion, and its file system busy.)
  std::vector<ObjectId> CloseUnused(const absl::flat_hash_set<ObjectId>& in_use);

 private:
  struct File {
    ObjectId object;
    ObjectFile file;
    PathFd original;  // null: `file` is no copy
    uint64_t account;
  };
  using Files = std::list<File>;  // most recently used first

  ObjectFile Share(UniqueFd fd) const;
  // Returns the next one.
  Files::iterator Release(Files::iterator file);
  Files::iterator FirstToGo();

  size_t budget_;
  Files files_;
  absl::flat_hash_map<ObjectId, Files::iterator> by_object_;
  absl::flat_hash_map<uint64_t, size_t> of_account_;  // files
  std::shared_ptr<std::atomic<size_t>> open_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace pyrometer
