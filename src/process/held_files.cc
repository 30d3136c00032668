// SPDX-License-Identifier: Apache-2.0
#include "process/held_files.h"

namespace pyrometer {

void HeldFiles::Hold(ObjectId object, UniqueFd fd) {
  if (budget_ == 0) return;
  if (const auto it = by_object_.find(object); it != by_object_.end()) {
    files_.erase(it->second);
    by_object_.erase(it);
  }
  while (files_.size() >= budget_) {
    by_object_.erase(files_.back().first);
    files_.pop_back();
  }
  files_.emplace_front(object, std::move(fd));
  by_object_[object] = files_.begin();
}

int HeldFiles::Find(ObjectId object) {
  const auto it = by_object_.find(object);
  if (it == by_object_.end()) return -1;
  files_.splice(files_.begin(), files_, it->second);
  return it->second->second.get();
}

}  // namespace pyrometer
