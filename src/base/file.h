// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// open(2) with O_CLOEXEC added.
Result<UniqueFd> Open(const std::string& path, int flags);

// The same of a path that begins at a directory.
Result<UniqueFd> OpenAt(int directory, const std::string& path, int flags);

// Reads all of a file (also in /proc, whose files have no size). More than `limit` bytes is an
// error of code kExhausted.
Result<std::string> ReadAll(int fd, size_t limit);
Result<std::string> ReadFile(const std::string& path, size_t limit = size_t{64} << 20);

// Reads exactly out.size() bytes from `offset`. Errors: kMalformed if the file ends earlier. Uses
// pread and never mmap, so a file that shrinks meanwhile is an error and not a SIGBUS.
Result<void> ReadAt(int fd, uint64_t offset, std::span<std::byte> out);

// Writes all of `bytes` to `fd`.
Result<void> WriteAll(int fd, std::string_view bytes);

// Writes `message` to `fd`, usually standard error. Failures are ignored: there is nobody to tell.
void WriteMessage(int fd, std::string_view message);

}  // namespace pyrometer
