// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/ascii.h>
#include <absl/strings/string_view.h>
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "config/agent_config_reader.h"

namespace pyrometer {
namespace {

// As in Prometheus, in any case.
ValueKind<RelabelAction> ActionName() {
  ValueKind<RelabelAction> kind = OneOf(RelabelActions());
  kind.parse = [exact = std::move(kind.parse)](std::string_view text) {
    return exact(absl::AsciiStrToLower(absl::string_view(text.data(), text.size())));
  };
  return kind;
}

RelabelRule ReadRule(ConfigSection& section) {
  RelabelRule rule;
  section.Read("action", rule.action, ActionName());
  section.ReadSequence("source_labels", rule.source_labels, NonEmptyText());
  section.Read("separator", rule.separator, AnyText());
  section.Read("regex", rule.regex, AnyText());
  uint32_t modulus = 0;
  section.Read("modulus", modulus, WholeNumber(1, std::numeric_limits<uint32_t>::max()));
  rule.modulus = modulus;
  section.Read("target_label", rule.target_label, AnyText());
  section.Read("replacement", rule.replacement, AnyText());
  section.RefuseOthers();
  return rule;
}

}  // namespace

std::vector<RelabelRule> ReadRelabelConfigs(ConfigSection& root) {
  constexpr std::string_view kKey = "relabel_configs";
  std::vector<RelabelRule> rules;
  std::optional<std::vector<ConfigSection>> sections = root.Sections(kKey);
  if (!sections) return rules;
  if (sections->size() > kMostRelabelRules) {
    root.Complain(kKey, fmt::format("has more than {} rules", kMostRelabelRules));
    return rules;
  }
  for (ConfigSection& section : *sections) {
    RelabelRule rule = ReadRule(section);
    if (section.HasErrors()) continue;
    if (const std::optional<RelabelMistake> mistake = FindMistake(rule)) {
      section.Complain(mistake->field, mistake->why);
    } else {
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

}  // namespace pyrometer
