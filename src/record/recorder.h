// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/record_config.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Records as `config` says, writes every output, and prints the accounting line to standard error.
// Returns the program's exit status: 0, or that of config.command (128 + signal if it was killed).
// SIGINT and SIGTERM end the recording early and cleanly: what was sampled is written.
// Errors: kPermission and kUnsupported if the kernel refuses; kNotFound for a pid, cgroup,
// container or command that does not exist; kIo, kExhausted if an output cannot be written.
Result<int> Record(const RecordConfig& config);

}  // namespace pyrometer
