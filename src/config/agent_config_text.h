// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/agent_config.h"

namespace pyrometer {

// What an agent with this configuration does, in lines for people: "sink pyroscope  http://...".
// Secrets are not among them.
std::string Describe(const AgentConfig& config);

}  // namespace pyrometer
