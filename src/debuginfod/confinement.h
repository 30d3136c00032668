// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pyrometer/result.h"

namespace pyrometer {

// Leaves this process no capabilities, no file to write, make or remove but below `directory`
// (where the kernel has Landlock: 5.13), no file larger than `most_bytes`, no program to execute,
// and no system calls by which it could reach other processes: it speaks with servers, which may be
// anybody's. REQUIRES: one thread. Errors: kUnsupported if something is refused.
Result<void> ConfineTo(const std::string& directory, uint64_t most_bytes);

}  // namespace pyrometer
