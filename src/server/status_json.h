// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/agent_status.h"

namespace pyrometer {

// Everything of `status` and its warnings as one JSON object. Times are RFC 3339 in UTC, durations
// are in seconds and say so in their names, sizes are bytes; what is not known is null.
std::string StatusJson(const AgentStatus& status);

}  // namespace pyrometer
