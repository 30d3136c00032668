// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/procfs.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Fails unless process ids mean the same to us, to our children, to /proc and to the kernel side:
// unless we are in the initial pid namespace and see its /proc. The kernel side knows processes by
// their ids there. Call this before starting threads: the kernel refuses them if our children would
// be in another namespace.
//
// Ids of another namespace cannot be translated for good: a /proc of that namespace shows none of
// the kernel's, and with the host's /proc the kernel still tells of mappings, execs and exits by
// ids of the namespace of whoever opened the perf event, and of processes outside of it by 0.
//
// Errors: kUnsupported, with what to do; kPermission, kIo if /proc cannot be read.
Result<void> CheckPidNamespace(const Procfs& procfs);

}  // namespace pyrometer
