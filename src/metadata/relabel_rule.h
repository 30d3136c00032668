// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyrometer {

enum class RelabelAction {
  kReplace,
  kKeep,
  kDrop,
  kKeepEqual,
  kDropEqual,
  kHashMod,
  kLabelMap,
  kLabelDrop,
  kLabelKeep,
  kLowercase,
  kUppercase,
};

// Every action by its name in a configuration, in the order above.
std::vector<std::pair<std::string, RelabelAction>> RelabelActions();
std::string_view Name(RelabelAction action);

// One item of relabel_configs with Prometheus' defaults: see
// https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config
struct RelabelRule {
  static constexpr std::string_view kAnything = "(.*)";

  RelabelAction action = RelabelAction::kReplace;
  std::vector<std::string> source_labels{};
  std::string separator = ";";
  std::string regex{kAnything};
  uint64_t modulus = 0;
  std::string target_label{};
  std::string replacement = "$1";

  bool operator==(const RelabelRule&) const = default;
};

// More are a mistake, and would take too much memory: a list's regular expressions 25 MiB at most.
inline constexpr size_t kMostRelabelRules = 100;
inline constexpr size_t kMostSourceLabels = 64;
inline constexpr size_t kLongestRuleField = 4096;  // bytes

struct RelabelMistake {
  std::string_view field;  // "target_label"
  std::string why;         // "is missing; replace needs it"
};

// What is wrong with `rule`, as Prometheus sees it: each action needs some fields, and refuses some
// others when they have no meaning for it. Nothing: Relabeling::Compile() takes it.
std::optional<RelabelMistake> FindMistake(const RelabelRule& rule);

}  // namespace pyrometer
