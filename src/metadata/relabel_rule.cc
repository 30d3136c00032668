// SPDX-License-Identifier: Apache-2.0
#include "metadata/relabel_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/printable.h"
#include "base/text.h"
#include "metadata/anchored_regex.h"

namespace pyrometer {
namespace {

using Action = RelabelAction;
using Mistake = std::optional<RelabelMistake>;

constexpr std::array<std::string_view, 11> kActionNames = {
    "replace",  "keep",      "drop",      "keepequal", "dropequal", "hashmod",
    "labelmap", "labeldrop", "labelkeep", "lowercase", "uppercase"};
constexpr size_t kLongestShown = 80;

bool IsOneOf(Action action, std::initializer_list<Action> actions) {
  return std::ranges::find(actions, action) != actions.end();
}

// A label's name in which parts come from groups: "app_${1}".
bool IsNameTemplate(const std::string& text) {
  static const Result<AnchoredRegex> kTemplate =
      AnchoredRegex::Compile(R"(((?:[a-zA-Z_]|\$(?:\{\w+\}|\w+))+\w*)+)");
  return kTemplate && kTemplate->Matches(text);
}

std::string Shown(std::string_view text) {
  return fmt::format("'{}'", Printable(text, kLongestShown));
}

Mistake CheckSizes(const RelabelRule& rule) {
  for (const auto& [field, text] :
       {std::pair<std::string_view, const std::string&>("separator", rule.separator),
        {"regex", rule.regex},
        {"target_label", rule.target_label},
        {"replacement", rule.replacement}}) {
    if (text.size() > kLongestRuleField) {
      return RelabelMistake{field, fmt::format("is longer than {} bytes", kLongestRuleField)};
    }
  }
  if (rule.source_labels.size() <= kMostSourceLabels) return std::nullopt;
  return RelabelMistake{"source_labels", fmt::format("has more than {}", kMostSourceLabels)};
}

Mistake CheckSources(const RelabelRule& rule) {
  for (const std::string& name : rule.source_labels) {
    if (!IsIdentifier(name)) {
      return RelabelMistake{"source_labels", Shown(name) + " is no label name"};
    }
  }
  return std::nullopt;
}

Mistake CheckTarget(const RelabelRule& rule) {
  const bool needs_target =
      IsOneOf(rule.action, {Action::kReplace, Action::kHashMod, Action::kLowercase,
                            Action::kUppercase, Action::kKeepEqual, Action::kDropEqual});
  if (!needs_target) return std::nullopt;
  if (rule.target_label.empty()) {
    return RelabelMistake{"target_label",
                          fmt::format("is missing; {} needs it", Name(rule.action))};
  }
  const bool may_have_groups = rule.action == Action::kReplace;
  if (IsIdentifier(rule.target_label) || (may_have_groups && IsNameTemplate(rule.target_label))) {
    return std::nullopt;
  }
  return RelabelMistake{"target_label",
                        fmt::format("{} is no label name{}", Shown(rule.target_label),
                                    may_have_groups ? ", also not with groups like ${1}" : "")};
}

Mistake CheckNumbers(const RelabelRule& rule) {
  if (rule.action != Action::kHashMod || rule.modulus > 0) return std::nullopt;
  return RelabelMistake{"modulus", "is missing; hashmod needs one of 1 or more"};
}

Mistake CheckReplacement(const RelabelRule& rule) {
  if (rule.action == Action::kLabelMap && !IsNameTemplate(rule.replacement)) {
    return RelabelMistake{"replacement",
                          fmt::format("{} makes no label name; labelmap needs one, like "
                                      "pod_${{1}}",
                                      Shown(rule.replacement))};
  }
  if (IsOneOf(rule.action, {Action::kLowercase, Action::kUppercase}) &&
      rule.replacement != RelabelRule().replacement) {
    return RelabelMistake{"replacement", fmt::format("has no meaning for {}", Name(rule.action))};
  }
  return std::nullopt;
}

// Two kinds of actions refuse what they do not look at, as it was meant for another.
Mistake CheckUnused(const RelabelRule& rule) {
  const bool compares = IsOneOf(rule.action, {Action::kKeepEqual, Action::kDropEqual});
  const bool picks_names = IsOneOf(rule.action, {Action::kLabelDrop, Action::kLabelKeep});
  if (!compares && !picks_names) return std::nullopt;
  const RelabelRule unset;
  struct Field {
    std::string_view name;
    bool is_set;
  };
  for (const Field& field : {Field{"regex", compares && rule.regex != unset.regex},
                             Field{"source_labels", picks_names && !rule.source_labels.empty()},
                             Field{"target_label", picks_names && !rule.target_label.empty()},
                             Field{"separator", rule.separator != unset.separator},
                             Field{"modulus", rule.modulus != unset.modulus},
                             Field{"replacement", rule.replacement != unset.replacement}}) {
    if (!field.is_set) continue;
    return RelabelMistake{
        field.name, fmt::format("has no meaning for {}, which takes only {}", Name(rule.action),
                                compares ? "source_labels and target_label" : "regex")};
  }
  return std::nullopt;
}

Mistake CheckRegex(const RelabelRule& rule) {
  const Result<AnchoredRegex> regex = AnchoredRegex::Compile(rule.regex);
  if (regex) return std::nullopt;
  return RelabelMistake{"regex", Printable(regex.error().message())};
}

}  // namespace

std::vector<std::pair<std::string, RelabelAction>> RelabelActions() {
  std::vector<std::pair<std::string, RelabelAction>> actions;
  for (size_t i = 0; i < kActionNames.size(); ++i) {
    actions.emplace_back(kActionNames[i], static_cast<RelabelAction>(i));
  }
  return actions;
}

std::string_view Name(RelabelAction action) {
  return kActionNames[static_cast<size_t>(action)];
}

std::optional<RelabelMistake> FindMistake(const RelabelRule& rule) {
  for (const auto& check : {CheckSizes, CheckSources, CheckTarget, CheckNumbers, CheckReplacement,
                            CheckUnused, CheckRegex}) {
    if (Mistake mistake = check(rule)) return mistake;
  }
  return std::nullopt;
}

}  // namespace pyrometer
