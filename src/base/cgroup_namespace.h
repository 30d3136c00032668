// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/procfs.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Moves the calling thread, and those that it starts later, into the machine's own cgroup
// namespace. In a namespace of its own, which a container may have, /proc/PID/cgroup shows paths
// relative to the container's cgroup ("/../../system.slice/ssh.service"), and "/" for its own
// processes. REQUIRES: the machine's pid namespace. Errors: kPermission without CAP_SYS_ADMIN and
// CAP_SYS_PTRACE.
Result<void> EnterMachineCgroupNamespace(const Procfs& procfs);

}  // namespace pyrometer
