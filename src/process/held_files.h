// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Open files of objects, so that what is deleted or belongs to an ended process stays readable.
// Beyond its budget the one not used for longest is closed. Thread-compatible.
class HeldFiles {
 public:
  explicit HeldFiles(size_t budget) : budget_(budget) {}

  void Hold(ObjectId object, UniqueFd fd);

  // -1 if it is not held. Counts as use; valid until the next Hold().
  int Find(ObjectId object);

  // Closes what is not `in_use` now and was not at a call before `since` either; returns what that
  // was. A file that stays open keeps its disk space after its deletion and its file system busy.
  std::vector<ObjectId> CloseUnused(const absl::flat_hash_set<ObjectId>& in_use, MonotonicTime now,
                                    MonotonicTime since);

 private:
  struct File {
    ObjectId object;
    UniqueFd fd;
    std::optional<MonotonicTime> unused;  // when that was first seen
  };
  using Files = std::list<File>;  // last used first

  size_t budget_;
  Files files_;
  absl::flat_hash_map<ObjectId, Files::iterator> by_object_;
};

}  // namespace pyrometer
