// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/agent_options.h"
#include "config/config_node.h"

namespace pyrometer {

// Writes what `options` say over `root`, the map of a whole configuration, as if it stood there:
// the same reader then checks both. Returns what has no place in a configuration at all.
std::vector<std::string> OverlayOptions(const AgentOptions& options, ConfigNode& root);

}  // namespace pyrometer
