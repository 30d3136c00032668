// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/result.h"

namespace pyrometer {

// Scripts rely on these; documented in this module's README.md and `pyrometer record --help`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRefused = 3;
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

int ExitStatus(ErrorCode code);

}  // namespace pyrometer
