// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that opens files of processes.
#include <sys/stat.h>

#include <string>
#include <utility>

#include "process/object_mapping.h"
#include "process/process_history.h"

namespace pyrometer {
namespace {

// Attempts to reach a file that is no longer held, through processes that map it.
constexpr int kReopenAttempts = 8;

UniqueFd ValueOrNone(Result<UniqueFd> fd) {
  return fd ? *std::move(fd) : UniqueFd();
}

}  // namespace

// Finds a file of a process that may be gone: then its path still means the same to any other
// process with the same root.
class ProcessHistory::Finder : public FileFinder {
 public:
  Finder(ProcessHistory& history, const FileMapping& range, const std::string& path,
         const RootIdentity& root, const ProcessDirectory* directory)
      : history_(history), range_(range), path_(path), root_(root), directory_(directory) {}

  UniqueFd OpenMapping() override {
    return directory_ == nullptr ? UniqueFd() : ValueOrNone(directory_->OpenMapped(range_));
  }

  UniqueFd OpenPath() override {
    if (directory_ != nullptr) {
      if (UniqueFd fd = OpenPathIn(*directory_)) return fd;
    }
    const auto witness = history_.witnesses_.find(root_);
    if (witness == history_.witnesses_.end()) return {};
    const auto directory = ProcessDirectory::Open(history_.options_.procfs, witness->second);
    if (!directory) {
      history_.witnesses_.erase(witness);
      return {};
    }
    return OpenPathIn(*directory);
  }

 private:
  // The process may have changed its root since; then its paths mean something else.
  UniqueFd OpenPathIn(const ProcessDirectory& directory) const {
    const Result<RootIdentity> now = directory.Root();
    const Result<UniqueFd> root = directory.OpenRoot();
    struct stat opened {};
    if (!now || *now != root_ || !root || ::fstat(root->get(), &opened) < 0 ||
        opened.st_dev != root_.device || opened.st_ino != root_.inode) {
      return {};
    }
    return ValueOrNone(OpenInRoot(root->get(), path_));
  }

  ProcessHistory& history_;
  const FileMapping& range_;
  const std::string& path_;
  const RootIdentity& root_;
  const ProcessDirectory* const directory_;
};

std::vector<ObjectMapping> ProcessHistory::ToObjects(const FileMapping& range,
                                                     const MappedFile& file,
                                                     const RootIdentity& root,
                                                     const ProcessDirectory* directory) {
  if (file.path == kVdsoPath) {
    const bool compat = range.end.value() <= (uint64_t{1} << 32);
    const ObjectId vdso = compat ? ObjectTable::kCompatVdso : ObjectTable::kVdso;
    return {{range.start, range.end, vdso, range.start.value()}};
  }
  const ObjectMapping anonymous{range.start, range.end, ObjectId(0), 0};
  if (IsAnonymous(file.path)) return {anonymous};
  Finder finder(*this, range, file.path, root, directory);
  const ObjectId object = objects_.Identify(root, file, finder);
  if (object == ObjectId(0)) return {anonymous};
  return ToObjectMappings(range, object, objects_.Find(object)->segments, page_size_);
}

std::optional<ObjectInfo> ProcessHistory::Object(ObjectId id) const {
  const ObjectInfo* const info = objects_.Find(id);
  return info == nullptr ? std::nullopt : std::optional(*info);
}

Result<UniqueFd> ProcessHistory::OpenObject(ObjectId id) {
  const ObjectInfo* const info = objects_.Find(id);
  if (info == nullptr || !info->was_opened) {
    return Fail(ErrorCode::kNotFound, "object {} has no file that could be opened", id.value());
  }
  if (Result<UniqueFd> held = objects_.OpenHeld(id)) return held;
  int attempts = 0;
  bool found = false;
  processes_.ForEachLiving([&](Process& process) {
    if (found || attempts >= kReopenAttempts) return;
    for (const ObjectMapping& mapping : process.program().space.Current()) {
      if (mapping.object != id) continue;
      ++attempts;
      const FileMapping range{mapping.start, mapping.end, FileOffset(0)};
      Finder finder(*this, range, info->path, process.program().root, DirectoryOf(process));
      found = objects_.Reopen(id, finder.OpenMapping()) || objects_.Reopen(id, finder.OpenPath());
      return;
    }
  });
  open_.reset();
  return objects_.OpenHeld(id);
}

Result<UniqueFd> ProcessHistory::OpenPerfMap(const ProcessKey& key) {
  const Process* const known = processes_.Find(key);
  if (known == nullptr) {
    return Fail(ErrorCode::kNotFound, "process {} is not known", key.pid.value());
  }
  const std::shared_ptr<PerfMapDirectory> kept = known->perf_map;
  if (known->alive()) {
    // Its user or root may have changed since.
    const ProcessDirectory* const directory = DirectoryOf(*processes_.Living(key.pid));
    const Result<PerfMapDirectory> now =
        directory == nullptr ? Fail(ErrorCode::kNotFound, "process {} is gone", key.pid.value())
                             : PerfMapDirectory::Of(*directory);
    open_.reset();
    if (now) return now->Open();
  }
  if (kept == nullptr) {
    return Fail(ErrorCode::kNotFound, "process {} is gone and had no code outside of files",
                key.pid.value());
  }
  return kept->Open();
}

}  // namespace pyrometer
