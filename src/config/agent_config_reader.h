// SPDX-License-Identifier: Apache-2.0
// What each key of the agent's configuration means. For agent_options.h; others start there.
#pragma once

#include <vector>

#include "config/agent_config.h"
#include "config/config_node.h"
#include "config/config_section.h"
#include "metadata/relabel_rule.h"

namespace pyrometer {

// Reads all keys of `root`, the map of the whole configuration. What is wrong is in the reading's
// errors, and keeps its default.
AgentConfig ReadAgentConfig(const ConfigNode& root, ConfigReading& reading);

// Reads the list below `sinks`, for ReadAgentConfig(); without the key, DefaultSink().
std::vector<SinkConfig> ReadSinks(ConfigSection& root);

// Reads the rules of the list below `relabel_configs`, for ReadAgentConfig().
std::vector<RelabelRule> ReadRelabelConfigs(ConfigSection& root);

}  // namespace pyrometer
