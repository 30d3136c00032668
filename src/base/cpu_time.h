// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace pyrometer {

// The CPU time that all threads of a process have taken so far; nothing if it is gone. By the
// kernel's clock of that process (clock_getcpuclockid(3)), which anybody may read.
std::optional<std::chrono::nanoseconds> CpuTimeOf(pid_t pid);

}  // namespace pyrometer
