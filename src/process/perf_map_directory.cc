// SPDX-License-Identifier: Apache-2.0
#include "process/perf_map_directory.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "base/file_identity.h"
#include "foreign/foreign_file.h"
#include "process/boot_clock.h"

namespace pyrometer {
namespace {

// For each of the two steps to the file.
constexpr std::chrono::nanoseconds kLimit = std::chrono::seconds(1);
// How much later a process may seem to begin: ticks, the file system's clock, small steps of the
// wall clock.
constexpr std::chrono::nanoseconds kClockError = std::chrono::seconds(1);

}  // namespace

PerfMapDirectory::PerfMapDirectory(PathFd tmp, const ProcStatus& status, StartTime start,
                                   std::shared_ptr<ForeignFiles> files)
    : tmp_(std::move(tmp)),
      start_(start),
      began_(WallTimeOf(start)),
      namespace_pid_(status.namespace_pid),
      owner_(status.owner),
      files_(std::move(files)) {}

Result<PerfMapDirectory> PerfMapDirectory::Of(const ProcessDirectory& directory, StartTime start,
                                              FileInspections& inspections) {
  ASSIGN_OR_RETURN(const ProcStatus status, directory.Status());
  ASSIGN_OR_RETURN(UniqueFd root, directory.OpenRoot());
  ASSIGN_OR_RETURN(const Inode inode, InodeOf(root.get()));
  PathFd tmp;
  if (auto cached = FindCachedInRoot(root.get(), "/tmp", O_DIRECTORY)) {
    ASSIGN_OR_RETURN(UniqueFd found, *std::move(cached));
    tmp = std::make_shared<const UniqueFd>(std::move(found));
  } else {
    const uint64_t file_system = NumberOf(Asked::kPath, std::array{inode.device, inode.number});
    tmp = inspections.FindDirectory(file_system, std::make_shared<const UniqueFd>(std::move(root)),
                                    "/tmp");
  }
  if (tmp == nullptr) return Fail(ErrorCode::kExhausted, "/tmp of the process was not found soon");
  return PerfMapDirectory(std::move(tmp), status, start, inspections.files());
}

bool PerfMapDirectory::IsSame(const PerfMapDirectory& other) const {
  const Result<Inode> mine = InodeOf(tmp_->get());
  const Result<Inode> others = InodeOf(other.tmp_->get());
  return start_ == other.start_ && namespace_pid_ == other.namespace_pid_ &&
         owner_ == other.owner_ && mine && others && *mine == *others;
}

Result<UniqueFd> PerfMapDirectory::Open() const {
  const std::string path = fmt::format("perf-{}.map", namespace_pid_.value());
  ASSIGN_OR_RETURN(const Inode tmp, InodeOf(tmp_->get()));
  const FilePatience patience{.limit = kLimit, .file_system = tmp.device};
  ASSIGN_OR_RETURN(const UniqueFd found, files_->LookUp(tmp_->get(), path, O_NOFOLLOW, patience));
  ASSIGN_OR_RETURN(const uint32_t owner, OwnerOf(found.get()));
  if (owner != 0 && owner != owner_) {
    return Fail(ErrorCode::kPermission, "{} belongs to user {}, its process to user {}", path,
                owner, owner_);
  }
  ASSIGN_OR_RETURN(const auto changed, ChangeTimeOf(found.get()));
  if (changed + kClockError < std::min(began_, WallTimeOf(start_))) {
    return Fail(ErrorCode::kNotFound, "{} is older than its process", path);
  }
  ASSIGN_OR_RETURN(OpenedFile opened, files_->OpenForReading(found.get(), patience));
  return std::move(opened.fd);
}

}  // namespace pyrometer
