// SPDX-License-Identifier: Apache-2.0
#include "process/held_files.h"

#include <utility>

namespace pyrometer {

ObjectFile HeldFiles::Share(UniqueFd fd) const {
  ++*open_;
  return {new UniqueFd(std::move(fd)), [open = open_](const UniqueFd* file) {
            delete file;
            --*open;
          }};
}

void HeldFiles::Hold(ObjectId object, OpenedFile file, PathFd path) {
  if (budget_ == 0) return;
  if (const auto it = by_object_.find(object); it != by_object_.end()) {
    files_.erase(it->second);
    by_object_.erase(it);
  }
  while (files_.size() >= budget_) {
    by_object_.erase(files_.back().object);
    files_.pop_back();
  }
  if (is_full()) return;
  files_.push_front({.object = object,
                     .file = Share(std::move(file.fd)),
                     .original = file.is_copy ? std::move(path) : nullptr});
  by_object_[object] = files_.begin();
}

ObjectFile HeldFiles::Find(ObjectId object) {
  const auto it = by_object_.find(object);
  if (it == by_object_.end()) return nullptr;
  files_.splice(files_.begin(), files_, it->second);
  return it->second->file;
}

bool HeldFiles::IsUnchanged(ObjectId object, const FileIdentity& identity) const {
  const auto it = by_object_.find(object);
  if (it == by_object_.end()) return false;
  const File& file = *it->second;
  const UniqueFd& fd = file.original == nullptr ? *file.file : *file.original;
  return pyrometer::IsUnchanged(fd.get(), identity);
}

std::vector<ObjectId> HeldFiles::CloseUnused(const absl::flat_hash_set<ObjectId>& in_use) {
  std::vector<ObjectId> closed;
  for (auto file = files_.begin(); file != files_.end();) {
    if (in_use.contains(file->object)) {
      ++file;
      continue;
    }
    closed.push_back(file->object);
    by_object_.erase(file->object);
    file = files_.erase(file);
  }
  return closed;
}

}  // namespace pyrometer
