// SPDX-License-Identifier: Apache-2.0
#include "foreign/foreign_file.h"

#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {
namespace {

// RESOLVE_CACHED of Linux 5.12, which older headers lack: only what the kernel has in memory.
constexpr uint64_t kResolveCached = 0x20;

int OpenBeneathOnce(int root, const std::string& path, int flags, uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
}

Result<UniqueFd> OpenBeneath(int root, const std::string& path, int flags) {
  if (path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "a path with a zero byte");
  }
  UniqueFd fd;
  // EAGAIN: somebody renamed directories at the same time.
  for (int attempt = 0; !fd && attempt < 3; ++attempt) {
    fd.Reset(OpenBeneathOnce(root, path, flags, 0));
    if (!fd && errno != EAGAIN) break;
  }
  if (!fd) return SystemError(errno, path);
  return fd;
}

Result<UniqueFd> OnlyRegular(UniqueFd fd, const std::string& name) {
  struct stat status {};
  if (::fstat(fd.get(), &status) < 0) return SystemError(errno, name);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "{}: not a regular file", name);
  return fd;
}

}  // namespace

Result<UniqueFd> OpenAgain(int fd) {
  const std::string name = fmt::format("/proc/self/fd/{}", fd);
  UniqueFd again(::open(name.c_str(), kForeignFlags));
  if (!again) return SystemError(errno, name);
  return OnlyRegular(std::move(again), name);
}

Result<UniqueFd> FindInRoot(int root, const std::string& path, int flags) {
  return OpenBeneath(root, path, O_PATH | O_CLOEXEC | flags);
}

std::optional<Result<UniqueFd>> FindCachedInRoot(int root, const std::string& path, int flags) {
  if (path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "a path with a zero byte");
  }
  UniqueFd fd(OpenBeneathOnce(root, path, O_PATH | O_CLOEXEC | flags, kResolveCached));
  if (fd) return fd;
  const bool is_unknown = errno == EAGAIN || errno == EINVAL;
  return is_unknown ? std::nullopt : std::optional(Result<UniqueFd>(SystemError(errno, path)));
}

}  // namespace pyrometer
