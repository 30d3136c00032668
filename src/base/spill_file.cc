// SPDX-License-Identifier: Apache-2.0
#include "base/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/system_error.h"

namespace pyrometer {

Result<std::shared_ptr<SpillFile>> SpillFile::Open(const Options& options) {
  const auto blocks = [](uint64_t bytes) { return static_cast<uint32_t>(bytes / kBlock); };
  ASSIGN_OR_RETURN(NamelessFile file, NamelessFile::Open(options.directories));
  const uint64_t most = file.in_memory ? options.most_in_memory : options.most_on_disk;
  return std::shared_ptr<SpillFile>(
      new SpillFile(std::move(file), blocks(most), options.left_on_disk));
}

Result<std::unique_ptr<const SpillFile::Extent>> SpillFile::Write(
    std::span<const std::byte> bytes) {
  const auto blocks = static_cast<uint32_t>(BlocksFor(bytes.size()));
  if (!file_.LeavesOnDisk(left_on_disk_))
    return Fail(ErrorCode::kExhausted, "too little is free on the disk");
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
        ::pwrite(file_.fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "writing what memory has no room for");
    at += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return extent;
}

void SpillFile::Free(uint32_t first_block, uint32_t count) {
  // If it fails, the disk keeps what will be overwritten.
  ::fallocate(file_.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
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
  file_->Free(first_block_, static_cast<uint32_t>(BlocksFor(size_)));
}

Result<void> SpillFile::Extent::Read(uint64_t offset, std::span<std::byte> out) const {
  return ReadAt(file_->file_.fd.get(), first_block_ * kBlock + offset, out);
}

}  // namespace pyrometer
