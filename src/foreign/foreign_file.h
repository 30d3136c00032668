// SPDX-License-Identifier: Apache-2.0
// Opening files that belong to the programs we look at, and may have been laid out to harm us.
#pragma once

#include <fcntl.h>

#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Do not wait for a FIFO's writer or a lease's holder, nor acquire a controlling terminal.
inline constexpr int kForeignFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// The regular file that `fd` stands for, opened once more for reading. Errors: kInvalid if it is
// anything else. `fd` may be open by O_PATH, which
// costs nothing where a file system does not answer: opening, reading and closing may each take for
// ever there, and belong in an opener.
Result<UniqueFd> OpenAgain(int fd);

// What `path` leads to, open by O_PATH: it may be anything. The path and symbolic links in it are
// resolved inside the directory `root` and cannot lead out of it, not even through /proc. `flags`:
// O_DIRECTORY, O_NOFOLLOW or 0. Errors: kNotFound, kPermission.
Result<UniqueFd> FindInRoot(int root, const std::string& path, int flags);

// The same as far as the kernel has the way in memory, so that no file system is asked. Nothing: it
// has not, or it is older than Linux 5.12, and FindInRoot() may wait for a server.
std::optional<Result<UniqueFd>> FindCachedInRoot(int root, const std::string& path, int flags);

}  // namespace pyrometer
