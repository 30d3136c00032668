// SPDX-License-Identifier: Apache-2.0
// The key relabel_configs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/agent_options.h"
#include "tests/unit/config/parsed_config.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(RelabelConfigs, AreReadInOrderWithTheirDefaults) {
  const AgentConfig config = Parse(R"(
relabel_configs:
  - source_labels: [__meta_process_comm, a, a]
    separator: "-"
    regex: (.+)-(\d+)
    target_label: app_${1}
    replacement: "${1}$2"
  - {action: DROP, regex: x, source_labels: [b]}
  - {action: hashmod, modulus: 8, source_labels: [b], target_label: shard}
  - {action: labelmap, regex: __meta_(.*)}
)");
  EXPECT_THAT(
      config.relabel_configs,
      ElementsAre(RelabelRule{.source_labels = {"__meta_process_comm", "a", "a"},
                              .separator = "-",
                              .regex = R"((.+)-(\d+))",
                              .target_label = "app_${1}",
                              .replacement = "${1}$2"},
                  RelabelRule{.action = RelabelAction::kDrop, .source_labels = {"b"}, .regex = "x"},
                  RelabelRule{.action = RelabelAction::kHashMod,
                              .source_labels = {"b"},
                              .modulus = 8,
                              .target_label = "shard"},
                  RelabelRule{.action = RelabelAction::kLabelMap, .regex = "__meta_(.*)"}));
  EXPECT_THAT(Parse("").relabel_configs, IsEmpty());
  EXPECT_THAT(Parse("relabel_configs: []").relabel_configs, IsEmpty());
}

TEST(RelabelConfigs, LeaveGroupsToTheRuleAndTakeTheRestFromTheEnvironment) {
  const AgentConfig config = Parse(
      "relabel_configs: [{target_label: a, replacement: '${1}-$2-${FREQUENCY}-$${name}-x$'}]");
  EXPECT_EQ(config.relabel_configs.at(0).replacement, "${1}-$2-49-${name}-x$");
}

TEST(RelabelConfigs, SayWhereAndWhatIsWrong) {
  for (const auto& [text, error] : std::vector<Wrong>{
           {"relabel_configs: x", "p.yaml:1:18: relabel_configs: found 'x', expected a list"},
           {"relabel_configs: [drop]", "relabel_configs[0]: found 'drop', expected keys"},
           {"relabel_configs:\n  - {target_label: a}\n  - action: dropp",
            "p.yaml:3:13: relabel_configs[1].action: found 'dropp', expected replace, keep, drop, "
            "keepequal, dropequal, hashmod, labelmap, labeldrop, labelkeep, lowercase or "
            "uppercase"},
           {"relabel_configs:\n  - regex: a(\n    target_label: a",
            "p.yaml:2:12: relabel_configs[0].regex: is no regular expression: missing )"},
           {"relabel_configs:\n  - source_labels: [a]",
            "p.yaml:2:5: relabel_configs[0].target_label: is missing; replace needs it"},
           {"relabel_configs: [{action: hashmod, target_label: a}]",
            "relabel_configs[0].modulus: is missing; hashmod needs one of 1 or more"},
           {"relabel_configs: [{action: hashmod, target_label: a, modulus: 0}]",
            "modulus: found '0', expected a whole number from 1 to 4294967295"},
           {"relabel_configs: [{action: labeldrop, regex: a, source_labels: [b]}]",
            "relabel_configs[0].source_labels: has no meaning for labeldrop, which takes only"},
           {"relabel_configs: [{source_labels: a, target_label: b}]",
            "source_labels: found 'a', expected a list, like [a, b]"},
           {"relabel_configs: [{source_labels: [a-b], target_label: b}]",
            "source_labels: 'a-b' is no label name"},
           {"relabel_configs: [{target_label: a, replacment: b}]",
            "relabel_configs[0].replacment: unknown key; did you mean 'replacement'?"},
           {"relabel_configs: [{target_label: a, replacement: '${GONE}'}]",
            "the environment variable GONE is not set"}}) {
    const std::string message = ErrorOf(text);
    EXPECT_THAT(message, HasSubstr(error)) << text;
    EXPECT_THAT(message, StartsWith("p.yaml:")) << text;
    EXPECT_THAT(message, testing::Not(HasSubstr("more: pyrometer"))) << "one mistake, one error";
  }
}

TEST(RelabelConfigs, AreNoMoreThanMemoryAllows) {
  std::string text = "relabel_configs:\n";
  for (int i = 0; i < 101; ++i) text += "  - {target_label: a}\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("relabel_configs: has more than 100 rules"));
}

}  // namespace
}  // namespace pyrometer
