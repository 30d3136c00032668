// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pyrometer/result.h"

namespace pyrometer {

// Gives up, for this thread and those it starts later, all capabilities but those that profiling
// needs (BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, SYSLOG, CHECKPOINT_RESTORE), and the ways to
// get others (new privileges, the bounding set). Before Linux 5.8 has its BPF and PERFMON,
// SYS_ADMIN stays. Call it while there is one thread. Errors: kInternal.
Result<void> KeepOnlyProfilingPrivileges();

// Gives up all capabilities of the calling thread: for threads that speak with the network.
void DropThreadPrivileges();

// The names of those that the calling thread has now: "bpf", "perfmon", ...
std::vector<std::string> Privileges();

}  // namespace pyrometer
