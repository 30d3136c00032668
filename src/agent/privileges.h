// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <thread>

#include "base/procfs.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Gives up, for this thread and those it starts later, all capabilities but those that profiling
// needs (BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, SYSLOG, CHECKPOINT_RESTORE), and the ways to
// get others (new privileges, the bounding set). Where kernel.perf_event_paranoid is above
// kHighestParanoia SYS_ADMIN is needed as well, also later, for CPUs that come online. Raises the
// limit of locked memory first, which needs another one. Call it while there is one thread. Errors:
// kInternal.
Result<void> KeepOnlyProfilingPrivileges(const Procfs& procfs);

// Gives up all capabilities of the calling thread: for threads that speak with the network.
void DropThreadPrivileges();

// Calls `make` in a thread without capabilities, so that the threads that it starts, libraries' own
// as well, have none either. Returns what it makes.
template <typename Make>
auto WithoutPrivileges(const Make& make) {
  std::optional<decltype(make())> made;
  std::jthread([&] {
    DropThreadPrivileges();
    made.emplace(make());
  }).join();
  return *std::move(made);
}

}  // namespace pyrometer
