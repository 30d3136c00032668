// SPDX-License-Identifier: Apache-2.0
#include "process/object_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

#include "base/system_error.h"
#include "base/text.h"

namespace pyrometer {
namespace {

// True if the open file is still called that, at least in the root of a process that is shut up in
// one. A place may have got another file since its mapping was reported.
bool IsCalled(int fd, std::string_view path) {
  std::array<char, PATH_MAX> link{};
  const ssize_t size =
      ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), link.data(), link.size());
  if (size < 0) return false;
  const std::string_view name(link.data(), static_cast<size_t>(size));
  return WithoutDeleted(name).ends_with(WithoutDeleted(path));
}

bool IsMemfd(std::string_view path) {
  return path.starts_with("/memfd:");
}

}  // namespace

ObjectTable::ObjectTable(const Options& options, ObjectInspector& inspector)
    : options_(options), inspector_(inspector), held_(options.held_files) {
  ObjectInfo vdso;
  vdso.path = kVdsoPath;
  vdso.is_vdso = true;
  objects_.push_back(std::make_shared<ObjectInfo>(vdso));
  ObjectInfo compat;
  compat.path = kVdsoPath;
  objects_.push_back(std::make_shared<ObjectInfo>(compat));
}

ObjectId ObjectTable::Identify(const RootIdentity& root, const MappedFile& file,
                               FileFinder& finder) {
  Name name{root, file};
  if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
  UniqueFd mapping = finder.OpenMapping();
  const Way way = mapping && IsCalled(mapping.get(), file.path) ? Way::kMapping : Way::kRenamed;
  const std::optional<ObjectId> named = Accept(finder.OpenPath(), file, Way::kPath);
  if (named && way == Way::kRenamed) mapping.Reset();
  const std::optional<ObjectId> mapped = Accept(std::move(mapping), file, way);
  if (!mapped && !named) return Unopened(name);
  const ObjectId id = mapped ? *mapped : *named;
  if (named == id && id != ObjectId(0)) RememberName(name, id);
  return id;
}

void ObjectTable::RememberName(const Name& name, ObjectId id) {
  unopened_by_name_.erase(name);
  // Who knows a name need not open the file: no more. One file can have any number of names.
  if (by_name_.size() >= options_.max_names) by_name_.clear();
  const BuildId& build_id = Find(id)->build_id;
  if (name.file.build_id.empty() && !build_id.empty()) {
    // /proc names inodes, events name build ids: the next one will be an event.
    MappedFile by_build_id{.path = name.file.path, .build_id = build_id};
    by_name_.emplace(Name{name.root, std::move(by_build_id)}, id);
  }
  by_name_.emplace(name, id);
}

ObjectId ObjectTable::Unopened(const Name& name) {
  const auto known = unopened_by_name_.find(name);
  if (known != unopened_by_name_.end()) return known->second;
  ObjectInfo info;
  info.path = name.file.path;
  info.build_id = name.file.build_id;
  const ObjectId id = Enter(std::move(info));
  if (id == ObjectId(0)) return id;
  ++unopened_;
  unopened_by_name_.emplace(name, id);
  return id;
}

ObjectId ObjectTable::Enter(ObjectInfo info) {
  if (objects_.size() >= options_.max_objects) {
    ++refused_;
    return ObjectId(0);
  }
  objects_.push_back(std::make_shared<ObjectInfo>(std::move(info)));
  return ObjectId(static_cast<uint32_t>(objects_.size()));
}

std::optional<ObjectTable::FileIdentity> ObjectTable::IdentityOf(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) < 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino,
                      status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec};
}

std::optional<ObjectId> ObjectTable::Accept(UniqueFd fd, const MappedFile& file, Way way) {
  if (!fd) return std::nullopt;
  const std::optional<FileIdentity> identity = IdentityOf(fd.get());
  if (!identity) return std::nullopt;
  if (const auto known = by_identity_.find(*identity); known != by_identity_.end()) {
    if (!Matches(fd.get(), file, Find(known->second)->build_id, way)) return std::nullopt;
    if (held_.Find(known->second) == nullptr) held_.Hold(known->second, std::move(fd));
    return known->second;
  }
  Result<ObjectFacts> facts = inspector_.Inspect(fd.get());
  if (!facts || !Matches(fd.get(), file, facts->build_id, way)) return std::nullopt;
  if (IsMemfd(file.path) && facts->segments.empty()) return ObjectId(0);  // a JIT's code
  ObjectInfo info;
  info.path = file.path;
  info.build_id = facts->build_id;
  info.segments = std::move(facts->segments);
  info.was_opened = true;
  const ObjectId id = Enter(std::move(info));
  if (id == ObjectId(0)) return id;
  by_identity_.emplace(*identity, id);
  held_.Hold(id, std::move(fd));
  return id;
}

bool ObjectTable::Matches(int fd, const MappedFile& file, const BuildId& found, Way way) const {
  if (!file.build_id.empty()) return file.build_id == found;
  // Overlay file systems show one inode to stat() and another in mappings, so the inode proves
  // nothing against a file that was opened through its mapping.
  if (way == Way::kMapping) return true;
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_ino == file.inode &&
         major(status.st_dev) == file.major && minor(status.st_dev) == file.minor;
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

bool ObjectTable::Reopen(ObjectId id, UniqueFd fd) {
  const std::optional<FileIdentity> identity = IdentityOf(fd.get());
  if (!identity) return false;
  const auto known = by_identity_.find(*identity);
  if (known == by_identity_.end() || known->second != id) return false;
  held_.Hold(id, std::move(fd));
  return true;
}

void ObjectTable::CloseUnused(const absl::flat_hash_set<ObjectId>& in_use) {
  const std::vector<ObjectId> closed = held_.CloseUnused(in_use);
  if (closed.empty()) return;
  // By its name alone nobody would open it again.
  const absl::flat_hash_set<ObjectId> forgotten(closed.begin(), closed.end());
  absl::erase_if(by_name_, [&](const auto& name) { return forgotten.contains(name.second); });
}

}  // namespace pyrometer
