// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/procfs.h"

namespace pyrometer {

// The highest level of kernel.perf_event_paranoid in the kernel's own sources. Above it, kernels of
// Debian (whose default is 3) and Ubuntu (4) refuse perf_event_open(2) to whom lacks CAP_SYS_ADMIN,
// whatever CAP_PERFMON says.
inline constexpr int64_t kHighestParanoia = 2;

// The number that `name`, a path below /proc/sys ("kernel/perf_event_paranoid"), has. Nothing if it
// cannot be read, or is not one number.
std::optional<int64_t> ReadSysctl(const Procfs& procfs, std::string_view name);

}  // namespace pyrometer
