// SPDX-License-Identifier: Apache-2.0
#include "profiler/debug_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/foreign_file.h"
#include "base/system_error.h"
#include "binary/debug_file.h"

namespace pyrometer {
namespace {

Result<uint32_t> UserOf(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) < 0) return SystemError(errno, "fstat");
  return status.st_uid;
}

bool Belongs(int fd, const DebugFileCriteria& object, Indexer& indexer) {
  const Result<uint32_t> user = UserOf(fd);
  if (!user || (*user != 0 && *user != object.user)) return false;
  const Result<ObjectFacts> facts = indexer.Inspect(fd);
  return facts && facts->build_id == object.build_id;
}

// From a container that shows the host's processes it is process 1 that has the host's root.
Result<UniqueFd> OpenHostRoot(const Procfs& procfs) {
  Result<UniqueFd> root = Open(procfs.Of(Pid(1), "root"), O_PATH | O_DIRECTORY);
  return root ? std::move(root) : Open("/", O_PATH | O_DIRECTORY);
}

}  // namespace

Result<UniqueFd> FindDebugFile(std::span<const UniqueFd> roots, const DebugFileCriteria& object,
                               Indexer& indexer) {
  const std::string path = DebugFilePath(object.build_id);
  for (const UniqueFd& root : roots) {
    if (path.empty()) break;
    Result<UniqueFd> file = OpenInRoot(root.get(), path);
    if (file && Belongs(file->get(), object, indexer)) return file;
  }
  return Fail(ErrorCode::kNotFound, "no debug file of build id \"{}\"", object.build_id.ToHex());
}

Result<UniqueFd> DebugFiles::Open(ObjectId object, int file) {
  const MonotonicTime now = clock_.Now();
  {
    const absl::MutexLock lock(&mutex_);
    if (missed_.Contains(object, now)) {
      return Fail(ErrorCode::kNotFound, "object {} had no debug file", object.value());
    }
  }
  Result<UniqueFd> found = Find(object, file);
  if (!found) {
    const absl::MutexLock lock(&mutex_);
    missed_.Add(object, now);
  }
  return found;
}

Result<UniqueFd> DebugFiles::Find(ObjectId object, int file) {
  const std::optional<ObjectInfo> info = processes_.Object(object);
  if (!info || info->build_id.empty()) {
    return Fail(ErrorCode::kNotFound, "object {} has no build id", object.value());
  }
  ASSIGN_OR_RETURN(const uint32_t user, UserOf(file));
  std::vector<UniqueFd> roots;
  if (Result<UniqueFd> own = processes_.OpenRootOf(object)) roots.push_back(*std::move(own));
  if (Result<UniqueFd> host = OpenHostRoot(procfs_)) roots.push_back(*std::move(host));
  return FindDebugFile(roots, {.build_id = info->build_id, .user = user}, indexer_);
}

}  // namespace pyrometer
