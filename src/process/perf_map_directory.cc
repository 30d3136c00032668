// SPDX-License-Identifier: Apache-2.0
#include "process/perf_map_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {

PerfMapDirectory::PerfMapDirectory(UniqueFd root, const ProcStatus& status)
    : root_(std::move(root)), namespace_pid_(status.namespace_pid), owner_(status.owner) {}

Result<PerfMapDirectory> PerfMapDirectory::Of(const ProcessDirectory& directory) {
  ASSIGN_OR_RETURN(const ProcStatus status, directory.Status());
  ASSIGN_OR_RETURN(UniqueFd root, directory.OpenRoot());
  return PerfMapDirectory(std::move(root), status);
}

Result<UniqueFd> PerfMapDirectory::Open() const {
  const std::string path = fmt::format("/tmp/perf-{}.map", namespace_pid_.value());
  ASSIGN_OR_RETURN(UniqueFd fd, OpenInRoot(root_.get(), path, O_NOFOLLOW));
  struct stat status {};
  if (::fstat(fd.get(), &status) < 0) return SystemError(errno, path);
  if (status.st_uid != 0 && status.st_uid != owner_) {
    return Fail(ErrorCode::kPermission, "{} belongs to user {}, its process to user {}", path,
                status.st_uid, owner_);
  }
  return fd;
}

}  // namespace pyrometer
