// SPDX-License-Identifier: Apache-2.0
#include "process/held_files.h"

#include <utility>

namespace pyrometer {

void HeldFiles::Hold(ObjectId object, UniqueFd fd) {
  if (budget_ == 0) return;
  if (const auto it = by_object_.find(object); it != by_object_.end()) {
    files_.erase(it->second);
    by_object_.erase(it);
  }
  while (files_.size() >= budget_) {
    by_object_.erase(files_.back().object);
    files_.pop_back();
  }
  files_.push_front({.object = object, .fd = std::move(fd), .unused = std::nullopt});
  by_object_[object] = files_.begin();
}

int HeldFiles::Find(ObjectId object) {
  const auto it = by_object_.find(object);
  if (it == by_object_.end()) return -1;
  files_.splice(files_.begin(), files_, it->second);
  return it->second->fd.get();
}

std::vector<ObjectId> HeldFiles::CloseUnused(const absl::flat_hash_set<ObjectId>& in_use,
                                             MonotonicTime now, MonotonicTime since) {
  std::vector<ObjectId> closed;
  for (auto file = files_.begin(); file != files_.end();) {
    if (in_use.contains(file->object)) {
      file->unused.reset();
    } else if (!file->unused) {
      file->unused = now;
    } else if (*file->unused < since) {
      closed.push_back(file->object);
      by_object_.erase(file->object);
      file = files_.erase(file);
      continue;
    }
    ++file;
  }
  return closed;
}

}  // namespace pyrometer
