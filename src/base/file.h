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

// All of a file (also of /proc, whose files have no size), but at most `limit` bytes: more is
// an error of code kExhausted.
Result<std::string> ReadAll(int fd, size_t limit);
Result<std::string> ReadFile(const std::string& path, size_t limit = size_t{64} << 20);

// Exactly out.size() bytes from `offset`, or an error: kMalformed if the file ends before.
// pread and never mmap: a file that shrinks under us is an error and not a SIGBUS.
Result<void> ReadAt(int fd, uint64_t offset, std::span<std::byte> out);

// All of `bytes` to `fd`.
Result<void> WriteAll(int fd, std::string_view bytes);

// `message` to `fd`, usually standard error. If that is closed or full nobody can be told, and
// whatever was going on goes on.
void WriteMessage(int fd, std::string_view message);

}  // namespace pyrometer
