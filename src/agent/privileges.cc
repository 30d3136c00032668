// SPDX-License-Identifier: Apache-2.0
#include "agent/privileges.h"

#include <cap-ng.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/sysctl.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

// What gets worse without each was measured by leaving it out (2026-11-22; a
// test, tests/system/installed_agent_test.py): without BPF or PERFMON nothing starts. Without
// SYS_PTRACE no program of another user has names, whenever it started. Without DAC_READ_SEARCH
// those that only their owners may read have none; without CHECKPOINT_RESTORE those that were
// deleted or replaced before the agent started; without SYSLOG the kernel has none.
constexpr std::array kNeeded = {CAP_BPF,    CAP_PERFMON,         CAP_SYS_PTRACE,
                                CAP_SYSLOG, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE};

constexpr auto kHeld = static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED);

// libcap-ng has the state of each thread in a variable of that thread.
Result<void> ReadState() {
  if (capng_get_caps_process() != 0) return SystemError(errno, "reading capabilities");
  return {};
}

// Before Linux 5.11 BPF maps count against this limit, and to raise it takes a capability that is
// about to go. If that is missing already, who started the program has to have raised it.
void RaiseLockedMemoryLimit() {
  rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_MEMLOCK, &limit);
}

}  // namespace

Result<void> KeepOnlyProfilingPrivileges(const Procfs& procfs) {
  RaiseLockedMemoryLimit();
  RETURN_IF_ERROR(ReadState());
  std::vector<int> needed(kNeeded.begin(), kNeeded.end());
  const int64_t paranoia = ReadSysctl(procfs, "kernel/perf_event_paranoid").value_or(0);
  if (paranoia > kHighestParanoia) needed.push_back(CAP_SYS_ADMIN);
  std::vector<int> kept;
  for (const int capability : needed) {
    if (capng_have_capability(CAPNG_PERMITTED, static_cast<unsigned>(capability)) == 1) {
      kept.push_back(capability);
    }
  }
  const bool may_bound = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP) == 1;
  capng_clear(CAPNG_SELECT_BOTH);
  for (const int capability : kept) {
    capng_update(CAPNG_ADD, kHeld, static_cast<unsigned>(capability));
    if (may_bound) {
      capng_update(CAPNG_ADD, CAPNG_BOUNDING_SET, static_cast<unsigned>(capability));
    }
  }
  // An ambient set cannot outlive the inheritable one, which is now empty.
  if (capng_apply(may_bound ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) != 0) {
    return SystemError(errno, "giving up capabilities");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return SystemError(errno, "giving up new privileges");
  }
  return {};
}

void DropThreadPrivileges() {
  if (!ReadState()) return;
  capng_clear(CAPNG_SELECT_CAPS);
  capng_apply(CAPNG_SELECT_CAPS);
}

}  // namespace pyrometer
