// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <list>
#include <utility>

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

  size_t size() const { return files_.size(); }

 private:
  using Files = std::list<std::pair<ObjectId, UniqueFd>>;  // last used first

  size_t budget_;
  Files files_;
  absl::flat_hash_map<ObjectId, Files::iterator> by_object_;
};

}  // namespace pyrometer
