// SPDX-License-Identifier: Apache-2.0
#include "indexer/sandbox.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "base/system_error.h"

namespace pyrometer {
namespace {

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

Error Refused(int error, const char* what) {
  return Fail(ErrorCode::kUnsupported, "{}: {}", what, std::strerror(error));
}

Result<void> Limit(int resource, uint64_t most) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) {
    return Refused(errno, "getrlimit");
  }
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) {
    return Refused(errno, "setrlimit");
  }
  return {};
}

// Bytes of address space.
uint64_t SizeOfThisProcess() {
  const std::unique_ptr<FILE, int (*)(FILE*)> statm(std::fopen("/proc/self/statm", "re"),
                                                    &std::fclose);
  uint64_t pages = 0;
  // Without /proc the limit is not exceeded by the code and libraries of this process alone.
  constexpr uint64_t kUnknown = uint64_t{1} << 18;
  if (statm == nullptr || std::fscanf(statm.get(), "%" SCNu64, &pages) != 1) pages = kUnknown;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

Result<void> LimitResources(const SandboxLimits& limits) {
  RETURN_IF_ERROR(Limit(RLIMIT_AS, SizeOfThisProcess() + limits.memory));
  RETURN_IF_ERROR(Limit(RLIMIT_CPU, limits.cpu_seconds));
  RETURN_IF_ERROR(Limit(RLIMIT_NOFILE, limits.files));
  RETURN_IF_ERROR(Limit(RLIMIT_FSIZE, 0));
  RETURN_IF_ERROR(Limit(RLIMIT_CORE, 0));
  return {};
}

Result<void> DropCapabilities() {
  capng_clear(CAPNG_SELECT_CAPS);
  if (capng_apply(CAPNG_SELECT_CAPS) != 0) return Refused(errno, "dropping capabilities");
  // Neither may others of our user look into it, nor does it leave a core.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Refused(errno, "PR_SET_DUMPABLE");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refused(errno, "PR_SET_NO_NEW_PRIVS");
  return {};
}

// What may be called with any arguments. Reading is by pread64; the messages are the answers.
// Threads of builds with sanitizers yield to one another.
constexpr int kAllowed[] = {
    SCMP_SYS(pread64), SCMP_SYS(read),       SCMP_SYS(recvmsg),       SCMP_SYS(sendmsg),
    SCMP_SYS(close),   SCMP_SYS(brk),        SCMP_SYS(munmap),        SCMP_SYS(mremap),
    SCMP_SYS(madvise), SCMP_SYS(futex),      SCMP_SYS(clock_gettime), SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),    SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn),  SCMP_SYS(sched_yield),
};

// Memory that is no file's and no code.
int AllowAnonymousMemory(scmp_filter_ctx filter) {
  const int mapped = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                                      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                                      SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
  if (mapped != 0) return mapped;
  return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                          SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

Result<void> FilterSystemCalls() {
  const Filter filter(seccomp_init(SCMP_ACT_KILL_PROCESS), &seccomp_release);
  if (filter == nullptr) return Refused(ENOMEM, "seccomp");
  // For all threads.
  if (const int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1)) {
    return Refused(-error, "seccomp");
  }
  for (const int call : kAllowed) {
    if (const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0)) {
      return Refused(-error, "seccomp");
    }
  }
  if (const int error = AllowAnonymousMemory(filter.get())) return Refused(-error, "seccomp");
  if (const int error = seccomp_load(filter.get())) return Refused(-error, "seccomp");
  return {};
}

}  // namespace

Result<void> EnterSandbox(const SandboxLimits& limits, const std::function<void()>& start_threads) {
  RETURN_IF_ERROR(LimitResources(limits));
  // These are each thread's own, and inherited.
  RETURN_IF_ERROR(DropCapabilities());
  if (start_threads) start_threads();
  return FilterSystemCalls();
}

}  // namespace pyrometer
