// SPDX-License-Identifier: Apache-2.0
#include "base/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>

#include "base/system_error.h"

namespace pyrometer {
namespace {

int64_t Nanoseconds(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

Result<struct statx> Ask(int fd, unsigned wanted) {
  struct statx status {};
  constexpr int kFlags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
  if (::statx(fd, "", kFlags, wanted, &status) < 0) return SystemError(errno, "statx");
  return status;
}

}  // namespace

Result<FileIdentity> IdentityOf(int fd) {
  constexpr unsigned kWanted =
      STATX_TYPE | STATX_INO | STATX_NLINK | STATX_SIZE | STATX_CTIME | STATX_MTIME;
  ASSIGN_OR_RETURN(const struct statx status, Ask(fd, kWanted));
  if (!S_ISREG(status.stx_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  return FileIdentity{.device = makedev(status.stx_dev_major, status.stx_dev_minor),
                      .inode = status.stx_ino,
                      .changed_ns = Nanoseconds(status.stx_ctime),
                      .modified_ns = Nanoseconds(status.stx_mtime),
                      .size = status.stx_size,
                      .links = status.stx_nlink};
}

Result<Inode> InodeOf(int fd) {
  ASSIGN_OR_RETURN(const struct statx status, Ask(fd, STATX_INO));
  return Inode{makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
}

Result<uint32_t> OwnerOf(int fd) {
  ASSIGN_OR_RETURN(const struct statx status, Ask(fd, STATX_UID));
  return status.stx_uid;
}

Result<std::chrono::system_clock::time_point> ChangeTimeOf(int fd) {
  ASSIGN_OR_RETURN(const struct statx status, Ask(fd, STATX_CTIME));
  return std::chrono::system_clock::time_point(
      std::chrono::nanoseconds(Nanoseconds(status.stx_ctime)));
}

bool MayBeWrittenBetween(const FileIdentity& identity, std::chrono::system_clock::time_point when,
                         std::chrono::system_clock::time_point now) {
  const auto nanoseconds = [](std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  };
  const int64_t written = identity.links == 0 ? identity.modified_ns : identity.changed_ns;
  return nanoseconds(when) < written && written <= nanoseconds(now);
}

bool IsUnchanged(int fd, const FileIdentity& identity) {
  const Result<FileIdentity> found = IdentityOf(fd);
  if (!found) return false;
  FileIdentity now = *found;
  if (now.links != identity.links) {
    now.links = identity.links;
    now.changed_ns = identity.changed_ns;
  }
  return now == identity;
}

}  // namespace pyrometer
