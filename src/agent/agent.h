// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/agent_options.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Profiles this machine until SIGINT or SIGTERM and delivers every window as `options` and their
// file say. Then it sends what is left, within 5 s, and returns 0. SIGHUP reads the file again:
// what can change does so between two windows; a file with a mistake changes nothing. Errors:
// kInvalid for the configuration; kPermission and kUnsupported if the kernel refuses; kIo if the
// address to listen on is taken.
Result<int> RunAgent(const AgentOptions& options);

}  // namespace pyrometer
