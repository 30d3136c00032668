// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pyrometer {

// What is known to answer without another machine or process. An overlay counts as such, though its
// layers may lie anywhere. False for what is unknown. Asks the file system, so it may hang itself.
bool IsOnLocalFileSystem(int fd);

// Likewise, of those that are not memory.
bool IsOnLocalDisk(int fd);

// True if the file system that `fd` is on would still have `bytes` for others. (Root may fill a
// disk to the last block, which others need.)
bool LeavesOnDisk(int fd, uint64_t bytes);

}  // namespace pyrometer
