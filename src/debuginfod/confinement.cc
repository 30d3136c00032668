// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/confinement.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "base/file.h"

namespace pyrometer {
namespace {

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

constexpr uint64_t kMostMemory = uint64_t{1} << 30;  // with the libraries for TLS
constexpr uint64_t kMostFiles = 128;

// Rights that later versions of Landlock added, which older headers do not have.
constexpr uint64_t kRefer = uint64_t{1} << 13;     // 5.19
constexpr uint64_t kTruncate = uint64_t{1} << 14;  // 6.2

constexpr uint64_t kWriting = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                              LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                              LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                              LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

Error Refused(int error, const char* what) {
  return Fail(ErrorCode::kUnsupported, "{}: {}", what, std::strerror(error));
}

Result<void> LimitTo(__rlimit_resource_t resource, uint64_t most) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return Refused(errno, "getrlimit");
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(resource, &limit) == 0 ? Result<void>() : Refused(errno, "setrlimit");
}

// Nothing may be executed; what writes, below the directory only.
Result<void> RestrictFiles(const std::string& directory) {
  const auto version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, uint32_t{LANDLOCK_CREATE_RULESET_VERSION});
  if (version < 1) return {};  // older than 5.13, or switched off
  const uint64_t writing = kWriting | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
  const landlock_ruleset_attr attributes{.handled_access_fs = writing | LANDLOCK_ACCESS_FS_EXECUTE};
  // The size of its first version, which all know.
  const UniqueFd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes,
                                                  sizeof(attributes.handled_access_fs), 0)));
  if (!rules) return Refused(errno, "Landlock");
  ASSIGN_OR_RETURN(const UniqueFd root, Open(directory, O_PATH | O_DIRECTORY));
  const landlock_path_beneath_attr beneath{.allowed_access = writing, .parent_fd = root.get()};
  if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0 ||
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) {
    return Refused(errno, "Landlock");
  }
  return {};
}

Result<void> DropAllCapabilities() {
  capng_clear(CAPNG_SELECT_CAPS);
  if (capng_apply(CAPNG_SELECT_CAPS) != 0) return Refused(errno, "dropping capabilities");
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Refused(errno, "PR_SET_DUMPABLE");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refused(errno, "PR_SET_NO_NEW_PRIVS");
  return {};
}

// What is of no use to a client of HTTP and reaches others, most of all those of the same user.
constexpr int kForbidden[] = {
    SCMP_SYS(kill),
    SCMP_SYS(tkill),
    SCMP_SYS(tgkill),
    SCMP_SYS(rt_sigqueueinfo),
    SCMP_SYS(rt_tgsigqueueinfo),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise),
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
    SCMP_SYS(setpriority),
    SCMP_SYS(sched_setaffinity),
    // Of files that are its user's, which Landlock does not look after.
    SCMP_SYS(chmod),
    SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),
    SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr),
    SCMP_SYS(fsetxattr),
    SCMP_SYS(truncate),
};

Result<void> ForbidSystemCalls() {
  const Filter filter(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release);
  if (filter == nullptr) return Refused(ENOMEM, "seccomp");
  for (const int call : kForbidden) {
    if (const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 0)) {
      return Refused(-error, "seccomp");
    }
  }
  // Limits of others, that is.
  if (const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64),
                                         1, SCMP_A0(SCMP_CMP_NE, 0))) {
    return Refused(-error, "seccomp");
  }
  if (const int error = seccomp_load(filter.get())) return Refused(-error, "seccomp");
  return {};
}

}  // namespace

Result<void> ConfineTo(const std::string& directory, uint64_t most_bytes) {
  ::signal(SIGXFSZ, SIG_IGN);  // writing too much is an error like any other
  ::signal(SIGPIPE, SIG_IGN);
  RETURN_IF_ERROR(LimitTo(RLIMIT_FSIZE, most_bytes));
  RETURN_IF_ERROR(LimitTo(RLIMIT_AS, kMostMemory));
  RETURN_IF_ERROR(LimitTo(RLIMIT_NOFILE, kMostFiles));
  RETURN_IF_ERROR(LimitTo(RLIMIT_CORE, 0));
  RETURN_IF_ERROR(RestrictFiles(directory));
  RETURN_IF_ERROR(DropAllCapabilities());
  return ForbidSystemCalls();
}

}  // namespace pyrometer
