// SPDX-License-Identifier: Apache-2.0
#include "metadata/relabel_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyrometer {
namespace {

using testing::HasSubstr;
using Action = RelabelAction;

std::string MistakeIn(const RelabelRule& rule) {
  const std::optional<RelabelMistake> mistake = FindMistake(rule);
  return mistake ? std::string(mistake->field) + ": " + mistake->why : "none";
}

TEST(RelabelRule, HasTheDefaultsOfPrometheus) {
  const RelabelRule rule;
  EXPECT_EQ(Name(rule.action), "replace");
  EXPECT_EQ(rule.separator, ";");
  EXPECT_EQ(rule.regex, "(.*)");
  EXPECT_EQ(rule.replacement, "$1");
  EXPECT_EQ(rule.target_label, "");
}

TEST(RelabelRule, KnowsEveryActionByItsName) {
  const auto actions = RelabelActions();
  EXPECT_EQ(actions.size(), 11U);
  for (const auto& [name, action] : actions) EXPECT_EQ(Name(action), name);
}

TEST(FindMistake, TakesWhatEachActionNeeds) {
  for (const RelabelRule& rule : std::vector<RelabelRule>{
           {.target_label = "a"},
           {.source_labels = {"a"}, .target_label = "${1}_b"},
           {.source_labels = {"a"}, .target_label = "b_$1"},
           {.action = Action::kKeep, .source_labels = {"a"}, .regex = "b"},
           {.action = Action::kDrop},
           {.action = Action::kKeepEqual, .source_labels = {"a"}, .target_label = "b"},
           {.action = Action::kDropEqual, .source_labels = {"a"}, .target_label = "b"},
           {.action = Action::kHashMod, .source_labels = {"a"}, .modulus = 1, .target_label = "b"},
           {.action = Action::kLabelMap, .regex = "a_(.*)"},
           {.action = Action::kLabelMap, .regex = "a_(.*)", .replacement = "b_${1}"},
           {.action = Action::kLabelDrop, .regex = "a"},
           {.action = Action::kLabelKeep, .regex = "a"},
           {.action = Action::kLowercase, .source_labels = {"a"}, .target_label = "b"},
           {.action = Action::kUppercase, .source_labels = {"a"}, .target_label = "b"}}) {
    EXPECT_EQ(MistakeIn(rule), "none") << Name(rule.action);
  }
}

TEST(FindMistake, NamesTheFieldAndWhatIsWrong) {
  struct Case {
    RelabelRule rule;
    const char* mistake;
  };
  for (const auto& [rule, mistake] : std::vector<Case>{
           {{}, "target_label: is missing; replace needs it"},
           {{.target_label = "a-b"}, "target_label: 'a-b' is no label name, also not with groups"},
           {{.target_label = "${1"}, "target_label: '${1' is no label name"},
           {{.target_label = "1a"}, "target_label: '1a' is no label name"},
           {{.source_labels = {"a.b"}, .target_label = "a"},
            "source_labels: 'a.b' is no label name"},
           {{.action = Action::kHashMod, .target_label = "a"},
            "modulus: is missing; hashmod needs one of 1 or more"},
           {{.action = Action::kHashMod, .modulus = 8}, "target_label: is missing; hashmod"},
           {{.action = Action::kHashMod, .modulus = 8, .target_label = "${1}"},
            "target_label: '${1}' is no label name"},
           {{.action = Action::kLowercase}, "target_label: is missing; lowercase needs it"},
           {{.action = Action::kUppercase, .target_label = "$1"}, "'$1' is no label name"},
           {{.action = Action::kUppercase, .target_label = "a", .replacement = "b"},
            "replacement: has no meaning for uppercase"},
           {{.action = Action::kKeepEqual}, "target_label: is missing; keepequal needs it"},
           {{.action = Action::kKeepEqual, .regex = "a", .target_label = "a"},
            "regex: has no meaning for keepequal, which takes only source_labels and target_label"},
           {{.action = Action::kDropEqual, .separator = ",", .target_label = "a"},
            "separator: has no meaning for dropequal"},
           {{.action = Action::kDropEqual, .modulus = 2, .target_label = "a"},
            "modulus: has no meaning for dropequal"},
           {{.action = Action::kDropEqual, .target_label = "a", .replacement = "b"},
            "replacement: has no meaning for dropequal"},
           {{.action = Action::kLabelDrop, .source_labels = {"a"}},
            "source_labels: has no meaning for labeldrop, which takes only regex"},
           {{.action = Action::kLabelKeep, .target_label = "a"},
            "target_label: has no meaning for labelkeep"},
           {{.action = Action::kLabelMap, .replacement = "a-$1"},
            "replacement: 'a-$1' makes no label name; labelmap needs one"},
           {{.action = Action::kKeep, .regex = "(a"}, "regex: is no regular expression: missing )"},
           {{.action = Action::kKeep, .regex = "(?!a)"}, "regex: is no regular expression"},
           {{.action = Action::kKeep, .regex = std::string(5000, 'a')},
            "regex: is longer than 4096 bytes"},
           {{.action = Action::kKeep, .source_labels = std::vector<std::string>(65, "a")},
            "source_labels: has more than 64"}}) {
    EXPECT_THAT(MistakeIn(rule), HasSubstr(mistake));
  }
}

}  // namespace
}  // namespace pyrometer
