// SPDX-License-Identifier: Apache-2.0
#include "base/file_system.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cstdint>

namespace pyrometer {
namespace {

// Not in linux/magic.h.
constexpr uint32_t kZfsMagic = 0x2fc12fc1;
constexpr uint32_t kBcachefsMagic = 0xca451a4e;
constexpr uint32_t kJfsMagic = 0x3153464a;

// 0 if it cannot be told.
uint32_t MagicOf(int fd) {
  struct statfs about {};
  return ::fstatfs(fd, &about) == 0 ? static_cast<uint32_t>(about.f_type) : 0;
}

bool IsDisk(uint32_t magic) {
  switch (magic) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case kZfsMagic:
    case OVERLAYFS_SUPER_MAGIC:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool IsOnLocalDisk(int fd) {
  return IsDisk(MagicOf(fd));
}

bool LeavesOnDisk(int fd, uint64_t bytes) {
  struct statfs about {};
  if (::fstatfs(fd, &about) != 0) return false;
  return about.f_bavail * static_cast<uint64_t>(about.f_bsize) >= bytes;
}

bool IsOnLocalFileSystem(int fd) {
  const uint32_t magic = MagicOf(fd);
  switch (magic) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case HUGETLBFS_MAGIC:
    case SQUASHFS_MAGIC:
    case CRAMFS_MAGIC:
    case EROFS_SUPER_MAGIC_V1:
    case ISOFS_SUPER_MAGIC:
    case UDF_SUPER_MAGIC:
    case MSDOS_SUPER_MAGIC:
    case EXFAT_SUPER_MAGIC:
    case REISERFS_SUPER_MAGIC:
    case NILFS_SUPER_MAGIC:
    case kJfsMagic:
    case kBcachefsMagic:
      return true;
    default:
      return IsDisk(magic);
  }
}

}  // namespace pyrometer
