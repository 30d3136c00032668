// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/procfs.h"

namespace pyrometer {

// The highest level of kernel.perf_event_paranoid in the kernel's own sources. Above it, kernels of
// Debian (whose default is 3) and Ubuntu (4) refuse perf_event_open(2) to whom lacks CAP_SYS_ADMIN,
// whatever CAP_PERFMON says.
inline constexpr int64_t kHighestParanoia = 2;

// The level, from /proc/sys. Nothing if it cannot be read.
std::optional<int64_t> ReadPerfParanoia(const Procfs& procfs);

}  // namespace pyrometer
