// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/agent_config.h"
#include "metadata/relabel_rule.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// The rules that `config` makes of labels: first those by which kubernetes.pod_labels become
// labels, so that relabel_configs, which follow, can change them.
std::vector<RelabelRule> RulesOf(const AgentConfig& config);

// The labels of every profile: those that the user gives, and as far as these have no such names,
// the node's name and `of_node`, what is known of the node's labels. By name.
Labels CommonLabels(const AgentConfig& config, const Labels& of_node);

// What the rule with this index is in the configuration: "relabel_configs[1]".
std::string NameOfRule(const AgentConfig& config, size_t rule);

}  // namespace pyrometer
