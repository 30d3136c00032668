// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/agent_status.h"

namespace pyrometer {

// The agent's warnings, and what the numbers of its status say is wrong, in plain words.
std::vector<std::string> WarningsOf(const AgentStatus& status);

}  // namespace pyrometer
