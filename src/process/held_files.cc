// SPDX-License-Identifier: Apache-2.0
#include "process/held_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "foreign/reading_budget.h"

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
  if (const auto it = by_object_.find(object); it != by_object_.end()) Release(it->second);
  while (files_.size() >= budget_) Release(FirstToGo());
  if (is_full()) return;
  const uint64_t account = AccountOf(file.is_copy ? path->get() : file.fd.get());
  files_.push_front({.object = object,
                     .file = Share(std::move(file.fd)),
                     .original = file.is_copy ? std::move(path) : nullptr,
                     .account = account});
  by_object_[object] = files_.begin();
  ++of_account_[account];
}

HeldFiles::Files::iterator HeldFiles::Release(Files::iterator file) {
  const auto own = of_account_.find(file->account);
  if (--own->second == 0) of_account_.erase(own);
  by_object_.erase(file->object);
  return files_.erase(file);
}

HeldFiles::Files::iterator HeldFiles::FirstToGo() {
  size_t most = 0;
  for (const auto& [account, files] : of_account_) most = std::max(most, files);
  auto file = std::prev(files_.end());
  while (of_account_[file->account] < most) --file;
  return file;
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
    file = Release(file);
  }
  return closed;
}

}  // namespace pyrometer
