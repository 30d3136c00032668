// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_file.h"

#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {
namespace {

int OpenBeneath(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: somebody renamed directories at the same time.
  for (int attempt = 0; attempt < 3; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how));
    if (fd >= 0 || errno != EAGAIN) return static_cast<int>(fd);
  }
  return -1;
}

}  // namespace

Result<UniqueFd> OnlyRegular(UniqueFd fd, const std::string& name) {
  struct stat status {};
  if (::fstat(fd.get(), &status) < 0) return SystemError(errno, name);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "{}: not a regular file", name);
  return fd;
}

Result<UniqueFd> OpenInRoot(int root, const std::string& path, int extra_flags) {
  if (path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "a path with a zero byte");
  }
  UniqueFd fd(OpenBeneath(root, path, kForeignFlags | extra_flags));
  if (!fd) return SystemError(errno, path);
  return OnlyRegular(std::move(fd), path);
}

Result<UniqueFd> OpenAgain(int fd) {
  const std::string name = fmt::format("/proc/self/fd/{}", fd);
  UniqueFd again(::open(name.c_str(), kForeignFlags));
  if (!again) return SystemError(errno, name);
  return OnlyRegular(std::move(again), name);
}

Result<UniqueFd> OpenDirectoryInRoot(int root, const std::string& path) {
  UniqueFd fd(OpenBeneath(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return SystemError(errno, path);
  return fd;
}

}  // namespace pyrometer
