// SPDX-License-Identifier: Apache-2.0
#include "agent/label_rules.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "metadata/container_meta_labels.h"

namespace pyrometer {

std::vector<RelabelRule> RulesOf(const AgentConfig& config) {
  std::vector<RelabelRule> rules;
  for (const std::string& label : config.kubernetes.pod_labels) {
    const std::string name = LabelNameOf(label);
    // Of a process that is in no pod, or in one without this label, it changes nothing.
    rules.push_back({.source_labels = {"__meta_kubernetes_pod_label_" + name},
                     .regex = "(.+)",
                     .target_label = name});
  }
  rules.insert(rules.end(), config.relabel_configs.begin(), config.relabel_configs.end());
  return rules;
}

Labels CommonLabels(const AgentConfig& config, const Labels& of_node) {
  std::map<std::string, std::string> labels(config.labels.begin(), config.labels.end());
  if (!config.kubernetes.node_name.empty()) labels.try_emplace("node", config.kubernetes.node_name);
  labels.insert(of_node.begin(), of_node.end());
  return {labels.begin(), labels.end()};
}

std::string NameOfRule(const AgentConfig& config, size_t rule) {
  const size_t pod_labels = config.kubernetes.pod_labels.size();
  if (rule < pod_labels) return fmt::format("kubernetes.pod_labels[{}]", rule);
  return fmt::format("relabel_configs[{}]", rule - pod_labels);
}

}  // namespace pyrometer
