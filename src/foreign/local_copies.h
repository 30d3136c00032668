// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/nameless_file.h"
#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Files for copies of other files, which together take no more than a budget. They are plain
// descriptors, and count until the last duplicate is closed. Thread-safe.
class LocalCopies {
 public:
  struct Options {
    std::vector<std::string> directories = NamelessFile::DefaultDirectories();
    uint64_t most_on_disk = uint64_t{1} << 30;     // bytes
    uint64_t most_in_memory = uint64_t{64} << 20;  // bytes, where no disk can be written
    uint64_t left_on_disk = uint64_t{1} << 30;     // bytes that stay free for others
  };

  explicit LocalCopies(Options options) : options_(std::move(options)) {}

  // An empty file that may grow to `size` bytes, for reading and writing. Errors: kExhausted if the
  // copies take all that they may, or the disk is nearly full; those of memfd_create(2).
  Result<UniqueFd> Make(uint64_t size);

  uint64_t bytes();

 private:
  struct Copy {
    UniqueFd witness;  // another open file description of the same file
    uint64_t size;
  };

  uint64_t Sweep();

  const Options options_;
  std::mutex mutex_;
  std::vector<Copy> copies_;  // guarded by mutex_
};

}  // namespace pyrometer
