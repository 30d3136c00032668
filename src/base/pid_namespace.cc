// SPDX-License-Identifier: Apache-2.0
#include "base/pid_namespace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/system_error.h"

namespace pyrometer {
namespace {

// Its inode number is part of the kernel's interface: PROC_PID_INIT_INO of linux/proc_ns.h.
constexpr std::string_view kInitialNamespace = "pid:[4026531836]";

bool Exists(const std::string& path) {
  struct stat ignored {};
  return ::lstat(path.c_str(), &ignored) == 0;
}

// What a symbolic link says; "" with errno if it cannot be read.
std::string ReadLink(const std::string& path) {
  std::array<char, 64> buffer{};
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace

Result<void> CheckPidNamespace(const Procfs& procfs) {
  const std::string path = procfs.root + "/self/ns/pid";
  const std::string ours = ReadLink(path);
  if (ours.empty()) {
    if (errno != ENOENT) return SystemError(errno, path);
    // A kernel without pid namespaces (CONFIG_PID_NS) has just the one.
    if (Exists(procfs.root + "/self/status")) return {};
    return Fail(ErrorCode::kUnsupported,
                "{} does not show this process: it is not mounted, or is that of another pid "
                "namespace; mount the /proc of the host's pid namespace there",
                procfs.root);
  }
  if (ours != kInitialNamespace) {
    return Fail(ErrorCode::kUnsupported,
                "this is not the host's pid namespace, so process ids here differ from those that "
                "the kernel samples by; run in the host's: `hostPID: true` in Kubernetes, `docker "
                "run --pid=host`");
  }
  // Cannot be read while nobody is in that namespace yet.
  const std::string of_children = procfs.root + "/self/ns/pid_for_children";
  if (Exists(of_children) && ReadLink(of_children) != ours) {
    return Fail(
        ErrorCode::kUnsupported,
        "our children would be in another pid namespace, and then the kernel lets us create "
        "no threads; with `unshare --pid`, also use `--fork`");
  }
  return {};
}

}  // namespace pyrometer
