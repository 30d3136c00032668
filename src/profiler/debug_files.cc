// SPDX-License-Identifier: Apache-2.0
#include "profiler/debug_files.h"

#include <fcntl.h>

#include <array>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/file_identity.h"
#include "binary/debug_file.h"

namespace pyrometer {
namespace {

// Stands for the file system that the debug files of a root lie on, which may be any: whoever has a
// directory of his own as root may mount there what he likes.
uint64_t DebugFileSystemOf(const UniqueFd& root) {
  const Result<Inode> inode = InodeOf(root.get());
  if (!inode) return 0;
  return NumberOf(Asked::kDebugFiles, std::array{inode->device, inode->number});
}

}  // namespace

// From a container that shows the host's processes it is process 1 that has the host's root.
Result<UniqueFd> OpenHostRoot(const Procfs& procfs) {
  Result<UniqueFd> root = Open(procfs.Of(Pid(1), "root"), O_PATH | O_DIRECTORY);
  return root ? std::move(root) : Open("/", O_PATH | O_DIRECTORY);
}

Result<UniqueFd> OpenDebugFile(const UniqueFd& root, const DebugFileCriteria& object,
                               ForeignFiles& files, Indexer& indexer) {
  const std::string path = DebugFilePath(object.build_id);
  if (path.empty()) return Fail(ErrorCode::kNotFound, "no build id to find a debug file by");
  const FilePatience patience{.limit = DebugFiles::kMostTime,
                              .file_system = DebugFileSystemOf(root)};
  ASSIGN_OR_RETURN(const UniqueFd place, files.LookUp(root.get(), path, 0, patience));
  ASSIGN_OR_RETURN(const uint32_t user, OwnerOf(place.get()));
  ASSIGN_OR_RETURN(OpenedFile file, files.OpenForReading(place.get(), patience));
  ASSIGN_OR_RETURN(const ObjectFacts facts, indexer.Inspect(file.fd.get()));
  if ((user != 0 && user != object.user) || facts.build_id != object.build_id) {
    return Fail(ErrorCode::kNotFound, "{} does not belong to the object", path);
  }
  return std::move(file.fd);
}

struct DebugFiles::Search {
  ObjectId object;
  std::vector<UniqueFd> roots;
  DebugFileCriteria criteria;
  OnFound on_found;
};

void DebugFiles::Find(ObjectId object, std::vector<UniqueFd> roots,
                      const DebugFileCriteria& criteria, OnFound on_found) {
  bool was_missed = false;
  {
    const absl::MutexLock lock(&mutex_);
    was_missed = missed_.Contains(object, parts_.clock.Now());
  }
  if (was_missed) return on_found(nullptr);
  Try(std::make_shared<Search>(Search{.object = object,
                                      .roots = std::move(roots),
                                      .criteria = criteria,
                                      .on_found = std::move(on_found)}),
      0);
}

void DebugFiles::Try(const std::shared_ptr<Search>& search, size_t root) {
  if (root >= search->roots.size()) {
    {
      const absl::MutexLock lock(&mutex_);
      const MonotonicTime now = parts_.clock.Now();
      if (!missed_.Contains(search->object, now)) missed_.Add(search->object, now);
    }
    return search->on_found(nullptr);
  }
  // The worker's own until it has ended.
  const auto found = std::make_shared<std::shared_ptr<const UniqueFd>>();
  const bool posted = parts_.workers.Post(
      DebugFileSystemOf(search->roots[root]), 3 * kMostTime,
      [search, root, found, files = parts_.files, indexer = parts_.indexer] {
        Result<UniqueFd> file =
            OpenDebugFile(search->roots[root], search->criteria, *files, *indexer);
        const QuestionEnd end = EndOf(file);
        if (file) *found = std::make_shared<const UniqueFd>(*std::move(file));
        return end;
      },
      lifeline_.To([search, root, found](DebugFiles& self, QuestionEnd work) {
        self.Tried(search, root, work == QuestionEnd::kDone ? *found : nullptr);
      }));
  if (!posted) Tried(search, root, nullptr);
}

void DebugFiles::Tried(const std::shared_ptr<Search>& search, size_t root,
                       const std::shared_ptr<const UniqueFd>& found) {
  if (found != nullptr) return search->on_found(found);
  Try(search, root + 1);
}

}  // namespace pyrometer
