// SPDX-License-Identifier: Apache-2.0
#include "base/spill_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/file.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr uint32_t kZfsMagic = 0x2fc12fc1;  // not in linux/magic.h

// File systems that do not hang when another machine or process does, and that are no memory.
bool IsOnLocalDisk(int fd) {
  struct statfs about {};
  if (::fstatfs(fd, &about) != 0) return false;
  switch (static_cast<uint32_t>(about.f_type)) {
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

// A new file in `directory` that is not named any more.
std::optional<UniqueFd> NamelessFileIn(const std::string& directory) {
  const Result<UniqueFd> at = Open(directory, O_PATH | O_DIRECTORY);
  if (!at || !IsOnLocalDisk(at->get())) return std::nullopt;
  // Not O_TMPFILE: overlay file systems have learned that only lately.
  std::string name = directory + "/pyrometer-XXXXXX";
  UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid() || ::unlink(name.c_str()) != 0) return std::nullopt;
  return file;
}

}  // namespace

Result<std::shared_ptr<SpillFile>> SpillFile::Open(const Options& options) {
  const auto blocks = [](uint64_t bytes) { return static_cast<uint32_t>(bytes / kBlock); };
  for (const std::string& directory : options.directories) {
    std::optional<UniqueFd> file = NamelessFileIn(directory);
    if (!file) continue;
    return std::shared_ptr<SpillFile>(
        new SpillFile(*std::move(file), false, blocks(options.most_on_disk), options.left_on_disk));
  }
  UniqueFd file(::memfd_create("pyrometer", MFD_CLOEXEC));
  if (!file.valid()) return SystemError(errno, "making a file in memory");
  return std::shared_ptr<SpillFile>(
      new SpillFile(std::move(file), true, blocks(options.most_in_memory), 0));
}

Result<std::unique_ptr<const SpillFile::Extent>> SpillFile::Write(
    std::span<const std::byte> bytes) {
  const auto blocks =
      static_cast<uint32_t>(std::max<uint64_t>((bytes.size() + kBlock - 1) / kBlock, 1));
  if (!MayGrow()) return Fail(ErrorCode::kExhausted, "too little is free on the disk");
  uint32_t first = 0;
  {
    const std::scoped_lock lock(mutex_);
    const std::optional<uint32_t> found = free_.Take(blocks);
    if (!found)
      return Fail(ErrorCode::kExhausted, "the file for what memory has no room for is full");
    first = *found;
    used_blocks_ += blocks;
  }
  std::unique_ptr<const Extent> extent(new Extent(shared_from_this(), first, bytes.size()));
  uint64_t at = first * kBlock;
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "writing what memory has no room for");
    at += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return extent;
}

// Root may fill a disk to the last block, which others need.
bool SpillFile::MayGrow() const {
  if (in_memory_) return true;
  struct statfs about {};
  if (::fstatfs(file_.get(), &about) != 0) return false;
  return about.f_bavail * static_cast<uint64_t>(about.f_bsize) >= left_on_disk_;
}

void SpillFile::Free(uint32_t first_block, uint32_t count) {
  // If it fails, the disk keeps what will be overwritten.
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(first_block * kBlock), static_cast<off_t>(count * kBlock));
  const std::scoped_lock lock(mutex_);
  free_.GiveBack(first_block, count);
  used_blocks_ -= count;
}

uint64_t SpillFile::bytes() const {
  const std::scoped_lock lock(mutex_);
  return used_blocks_ * kBlock;
}

SpillFile::Extent::~Extent() {
  const uint64_t blocks = std::max<uint64_t>((size_ + kBlock - 1) / kBlock, 1);
  file_->Free(first_block_, static_cast<uint32_t>(blocks));
}

Result<void> SpillFile::Extent::Read(uint64_t offset, std::span<std::byte> out) const {
  return ReadAt(file_->file_.get(), first_block_ * kBlock + offset, out);
}

}  // namespace pyrometer
