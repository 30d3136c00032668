// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/agent_status.h"

namespace pyrometer {

// What is wrong with an agent in this state and what to do about it, in plain words; the most
// important first.
std::vector<std::string> WarningsOf(const AgentStatus& status);

}  // namespace pyrometer
