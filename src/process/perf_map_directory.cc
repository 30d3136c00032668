// SPDX-License-Identifier: Apache-2.0
#include "process/perf_map_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/foreign_file.h"
#include "base/system_error.h"

namespace pyrometer {

PerfMapDirectory::PerfMapDirectory(UniqueFd tmp, const ProcStatus& status)
    : tmp_(std::move(tmp)), namespace_pid_(status.namespace_pid), owner_(status.owner) {}

Result<PerfMapDirectory> PerfMapDirectory::Of(const ProcessDirectory& directory) {
  ASSIGN_OR_RETURN(const ProcStatus status, directory.Status());
  ASSIGN_OR_RETURN(const UniqueFd root, directory.OpenRoot());
  ASSIGN_OR_RETURN(UniqueFd tmp, OpenDirectoryInRoot(root.get(), "/tmp"));
  return PerfMapDirectory(std::move(tmp), status);
}

bool PerfMapDirectory::IsSame(const PerfMapDirectory& other) const {
  struct stat mine {};
  struct stat others {};
  return namespace_pid_ == other.namespace_pid_ && owner_ == other.owner_ &&
         ::fstat(tmp_.get(), &mine) == 0 && ::fstat(other.tmp_.get(), &others) == 0 &&
         mine.st_dev == others.st_dev && mine.st_ino == others.st_ino;
}

Result<UniqueFd> PerfMapDirectory::Open() const {
  const std::string path = fmt::format("perf-{}.map", namespace_pid_.value());
  ASSIGN_OR_RETURN(UniqueFd fd, OpenInRoot(tmp_.get(), path, O_NOFOLLOW));
  struct stat status {};
  if (::fstat(fd.get(), &status) < 0) return SystemError(errno, path);
  if (status.st_uid != 0 && status.st_uid != owner_) {
    return Fail(ErrorCode::kPermission, "{} belongs to user {}, its process to user {}", path,
                status.st_uid, owner_);
  }
  return fd;
}

}  // namespace pyrometer
