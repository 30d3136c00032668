// SPDX-License-Identifier: Apache-2.0
#include "process/object_table.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {

ObjectTable::ObjectTable(const Options& options, FileInspections& inspections)
    : options_(options), inspections_(inspections), held_(options.held_files) {
  ObjectInfo vdso;
  vdso.path = kVdsoPath;
  vdso.is_vdso = true;
  objects_.push_back(std::make_shared<ObjectInfo>(vdso));
  ObjectInfo compat;
  compat.path = kVdsoPath;
  objects_.push_back(std::make_shared<ObjectInfo>(compat));
}

std::optional<ObjectId> ObjectTable::Remembered(const Name& name) {
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return std::nullopt;
  const ObjectId id = known->second;
  const ObjectInfo& info = *Find(id);
  // Without a build id nothing in the name tells of another content.
  if (!info.build_id.empty() || held_.IsUnchanged(id, info.identity)) return id;
  by_name_.erase(known);
  return std::nullopt;
}

std::optional<ObjectId> ObjectTable::RememberedInode(const MappedFile& file,
                                                     const std::optional<WallTime>& mapped) {
  const auto known = by_name_.find(Name{{}, file});
  if (known == by_name_.end() || !IsHeldAndUnchanged(known->second)) return std::nullopt;
  return IsNewer(Find(known->second)->identity, mapped) ? std::nullopt
                                                        : std::optional(known->second);
}

bool ObjectTable::IsHeldAndUnchanged(ObjectId id) const {
  const ObjectInfo* const info = Find(id);
  return info != nullptr && info->was_opened && held_.IsUnchanged(id, info->identity);
}

bool ObjectTable::IsOverwritten(ObjectId id) const {
  const ObjectInfo* const info = Find(id);
  if (info == nullptr || !info->was_opened || !info->build_id.empty()) return false;
  return overwritten_.contains(id) || (held_.Holds(id) && !held_.IsUnchanged(id, info->identity));
}

ObjectTable::Substitute ObjectTable::Overwritten(ObjectId id, MonotonicTime since) {
  const auto [known, is_new] = overwritten_.try_emplace(id, Substitute{.by = {}, .since = since});
  known->second.since = std::min(known->second.since, since);
  if (!is_new) return known->second;
  ObjectInfo info;
  info.path = Find(id)->path;
  known->second.by = Enter(std::move(info));
  absl::erase_if(by_name_, [&](const auto& name) { return name.second == id; });
  return known->second;
}

void ObjectTable::RememberName(const Name& name, ObjectId id) {
  if (id == ObjectId(0) || !Find(id)->was_opened) return;
  FindLate(name, id);
  // Who knows a name need not look for the file: no more. One file can have any number of names.
  if (by_name_.size() >= options_.max_names) by_name_.clear();
  const BuildId& build_id = Find(id)->build_id;
  if (name.file.build_id.empty() && !build_id.empty()) {
    // /proc names inodes, events name build ids: the next one will be an event.
    MappedFile by_build_id{.path = name.file.path, .build_id = build_id};
    by_name_.emplace(Name{name.root, std::move(by_build_id)}, id);
  }
  by_name_.emplace(name, id);
}

// Events name build ids, and /proc inodes (never a generation): either may have been first.
void ObjectTable::FindLate(const Name& name, ObjectId id) {
  if (unopened_by_name_.empty()) return;
  const ObjectInfo& info = *Find(id);
  const FileIdentity& identity = info.identity;
  const Name by_build_id{name.root, {.path = name.file.path, .build_id = info.build_id}};
  const Name by_inode{name.root,
                      {.path = name.file.path,
                       .build_id = {},
                       .major = major(identity.device),
                       .minor = minor(identity.device),
                       .inode = identity.inode}};
  for (const Name* const known : {&name, &by_build_id, &by_inode}) {
    const auto unopened = unopened_by_name_.find(*known);
    if (unopened == unopened_by_name_.end()) continue;
    // Without a build id nothing in the name tells of another content.
    const bool is_other =
        known->file.build_id.empty() && IsNewer(identity, unopened->second.mapped);
    if (!is_other) found_late_.push_back({unopened->second.id, id});
    unopened_by_name_.erase(unopened);
  }
}

bool ObjectTable::RememberInode(const MappedFile& file, ObjectId id) {
  const bool is_told = file.build_id.empty() && file.inode != 0 && id != ObjectId(0);
  if (!is_told || !Find(id)->was_opened || !IsInodeOf(file, Find(id)->identity)) return false;
  if (by_name_.size() >= options_.max_names) by_name_.clear();
  by_name_.insert_or_assign(Name{{}, file}, id);
  return true;
}

ObjectId ObjectTable::Unopened(const Name& name, const std::optional<WallTime>& mapped) {
  const auto known = unopened_by_name_.find(name);
  if (known != unopened_by_name_.end()) return known->second.id;
  ObjectInfo info;
  info.path = name.file.path;
  info.build_id = name.file.build_id;
  const ObjectId id = Enter(std::move(info));
  if (id == ObjectId(0)) return id;
  ++unopened_;
  unopened_by_name_.emplace(name, NotFound{id, mapped.value_or(options_.clock.WallNow())});
  return id;
}

ObjectId ObjectTable::Enter(ObjectInfo info) {
  const bool may_reuse = !forgotten_.empty() && looks_ - forgotten_.front().look > kQuarantine;
  if (may_reuse && objects_.size() >= options_.max_objects / 2) {
    const ObjectId id = forgotten_.front().id;
    forgotten_.pop_front();
    objects_[id.value() - 1] = std::make_shared<ObjectInfo>(std::move(info));
    return id;
  }
  if (objects_.size() >= options_.max_objects) {
    ++refused_;
    return ObjectId(0);
  }
  objects_.push_back(std::make_shared<ObjectInfo>(std::move(info)));
  return ObjectId(static_cast<uint32_t>(objects_.size()));
}

const ObjectInfo* ObjectTable::Find(ObjectId id) const {
  if (id.value() == 0 || id.value() > objects_.size()) return nullptr;
  return objects_[id.value() - 1].get();
}

std::shared_ptr<const ObjectInfo> ObjectTable::Share(ObjectId id) const {
  return Find(id) == nullptr ? nullptr : objects_[id.value() - 1];
}

Result<UniqueFd> ObjectTable::OpenHeld(ObjectId id) {
  const ObjectFile held = Held(id);
  if (held == nullptr) return Fail(ErrorCode::kNotFound, "object {} is not open", id.value());
  UniqueFd copy(::fcntl(held->get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return SystemError(errno, "duplicating a file descriptor");
  return copy;
}

bool ObjectTable::Reopen(ObjectId id, UniqueFd path_fd) {
  const Candidate candidate = CandidateOf(std::move(path_fd), Through::kMapping, {}, {});
  if (candidate.file == nullptr) return false;
  const auto known = by_identity_.find(candidate.identity);
  if (known == by_identity_.end() || known->second != id) return false;
  HoldAgain(id, candidate.file, candidate.identity);
  return true;
}

std::vector<ObjectId> ObjectTable::CloseUnused(const absl::flat_hash_set<ObjectId>& in_use) {
  std::erase_if(later_, [&](const Later& later) {
    if (in_use.contains(later.wanted.object)) return false;
    ForgetPlaceholder(later.wanted);
    return true;
  });
  unreadable_.clear();
  std::vector<ObjectId> closed = held_.CloseUnused(in_use);
  const std::vector<ObjectId> forgotten = TakeUnused(in_use);
  Forget(forgotten);
  closed.insert(closed.end(), forgotten.begin(), forgotten.end());
  if (closed.empty()) return closed;
  // By its name alone nobody would open it again.
  const absl::flat_hash_set<ObjectId> nameless(closed.begin(), closed.end());
  absl::erase_if(by_name_, [&](const auto& name) { return nameless.contains(name.second); });
  return closed;
}

// False if it stands for something that is under way.
bool ObjectTable::MayForget(ObjectId id) const {
  return Find(id) != nullptr && id != kVdso && id != kCompatVdso && !held_.Holds(id) &&
         !pending_.contains(id) && !opening_.contains(id);
}

// What has not been in use for the second time.
std::vector<ObjectId> ObjectTable::TakeUnused(const absl::flat_hash_set<ObjectId>& in_use) {
  ++looks_;
  // What stands for an overwritten object goes with it.
  absl::flat_hash_set<ObjectId> substitutes;
  for (const auto& [id, substitute] : overwritten_) substitutes.insert(substitute.by);
  std::vector<ObjectId> taken;
  absl::flat_hash_set<ObjectId> unused;
  for (uint32_t value = 1; value <= objects_.size(); ++value) {
    const ObjectId id(value);
    if (in_use.contains(id) || substitutes.contains(id) || !MayForget(id)) continue;
    if (unused_.contains(id)) {
      taken.push_back(id);
    } else {
      unused.insert(id);
    }
  }
  unused_ = std::move(unused);
  return taken;
}

void ObjectTable::Forget(const std::vector<ObjectId>& ids) {
  if (ids.empty()) return;
  bool any_unopened = false;
  for (const ObjectId id : ids) {
    const ObjectInfo& info = *Find(id);
    const auto identity = by_identity_.find(info.identity);
    if (identity != by_identity_.end() && identity->second == id) by_identity_.erase(identity);
    any_unopened |= !info.was_opened;
    overwritten_.erase(id);
    objects_[id.value() - 1].reset();
    forgotten_.push_back({id, looks_});
  }
  if (!any_unopened) return;
  absl::erase_if(unopened_by_name_,
                 [this](const auto& name) { return Find(name.second.id) == nullptr; });
}

}  // namespace pyrometer
