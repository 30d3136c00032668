// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A new file that nothing is left of when it is closed, for reading and writing.
struct NamelessFile {
  UniqueFd fd;
  bool in_memory = false;

  // In the first of `directories` that lies on a local disk file system and can be written; a memfd
  // if there is none. Errors: those of memfd_create(2).
  static Result<NamelessFile> Open(const std::vector<std::string>& directories);

  // Where we may keep what memory should not hold, in the order of preference.
  static std::vector<std::string> DefaultDirectories() {
    return {"/var/cache/pyrometer", "/var/tmp"};
  }

  // True if its disk would still have `bytes` for others; of memory always.
  bool LeavesOnDisk(uint64_t bytes) const;
};

}  // namespace pyrometer
