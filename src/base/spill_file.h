// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/free_ranges.h"
#include "base/nameless_file.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Bytes that are written once and read often, kept where they cost no memory: in a file without a
// name on a local disk, of which the kernel caches what is in use. Where no disk can be written it
// is a memfd. One descriptor serves all. Nothing is left when the process ends. Thread-safe.
class SpillFile : public std::enable_shared_from_this<SpillFile> {
 public:
  static constexpr uint64_t kBlock = 4096;

  struct Options {
    // Tried in this order. What is no directory of a local disk file system is passed over.
    std::vector<std::string> directories = NamelessFile::DefaultDirectories();
    uint64_t most_on_disk = uint64_t{1} << 30;     // bytes
    uint64_t most_in_memory = uint64_t{64} << 20;  // bytes, of a memfd
    uint64_t left_on_disk = uint64_t{1} << 30;     // bytes that stay free for others
  };

  // Some bytes of the file, whose room is free again when this goes.
  class Extent {
   public:
    ~Extent();
    Extent(const Extent&) = delete;
    Extent& operator=(const Extent&) = delete;

    uint64_t size() const { return size_; }
    // What it takes of the file: whole blocks.
    uint64_t room() const { return BlocksFor(size_) * kBlock; }
    // Reads out.size() bytes at `offset`. REQUIRES: they lie within the extent. Errors: kIo,
    // kMalformed.
    Result<void> Read(uint64_t offset, std::span<std::byte> out) const;

   private:
    friend class SpillFile;
    Extent(std::shared_ptr<SpillFile> file, uint32_t first_block, uint64_t size)
        : file_(std::move(file)), first_block_(first_block), size_(size) {}

    const std::shared_ptr<SpillFile> file_;
    const uint32_t first_block_;
    const uint64_t size_;
  };

  // Errors: those of memfd_create(2), if there is no disk.
  static Result<std::shared_ptr<SpillFile>> Open(const Options& options);

  // Errors: kExhausted if the file is full, or the disk nearly is; kIo.
  Result<std::unique_ptr<const Extent>> Write(std::span<const std::byte> bytes);

  bool is_in_memory() const { return file_.in_memory; }
  uint64_t most() const { return most_blocks_ * kBlock; }
  // How much unwind tables may keep, and symbol tables and source maps together. The rest, a
  // quarter, is for what is being made.
  uint64_t share() const { return most() / 8 * 3; }
  // Allocated now, in whole blocks.
  uint64_t bytes() const;

 private:
  static uint64_t BlocksFor(uint64_t bytes) {
    return bytes == 0 ? 1 : (bytes + kBlock - 1) / kBlock;
  }
  SpillFile(NamelessFile file, uint32_t blocks, uint64_t left_on_disk)
      : file_(std::move(file)), most_blocks_(blocks), left_on_disk_(left_on_disk), free_(blocks) {}
  void Free(uint32_t first_block, uint32_t count);

  const NamelessFile file_;
  const uint64_t most_blocks_;
  const uint64_t left_on_disk_;
  mutable std::mutex mutex_;
  FreeRanges free_;  // guarded by mutex_; so the rest
  uint64_t used_blocks_ = 0;
};

}  // namespace pyrometer
