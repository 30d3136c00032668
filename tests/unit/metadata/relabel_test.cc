// SPDX-License-Identifier: Apache-2.0
// What the rules do, by the semantics that Prometheus documents:
// https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config
#include "metadata/relabel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Action = RelabelAction;
using Rules = std::vector<RelabelRule>;

Relabeling Compiled(const Rules& rules) {
  Result<Relabeling> relabeling = Relabeling::Compile(rules);
  if (relabeling) return *std::move(relabeling);
  ADD_FAILURE() << relabeling.error().message();
  return {};
}

// "a=1 b=2", or "dropped by rule 1".
std::string Outcome(const Rules& rules, const Labels& labels) {
  const Relabeled result = Compiled(rules).Apply(labels);
  if (result.dropped_by) return fmt::format("dropped by rule {}", *result.dropped_by);
  std::string text;
  for (const auto& [name, value] : result.labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

struct Case {
  Rules rules;
  Labels labels;
  const char* result;
};

void Check(const std::vector<Case>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Outcome(cases[i].rules, cases[i].labels), cases[i].result) << "case " << i;
  }
}

TEST(Relabeling, Replaces) {
  Check({
      {{{.source_labels = {"a"}, .target_label = "d"}}, {{"a", "foo"}}, "a=foo d=foo"},
      {{{.source_labels = {"a"}, .regex = "f(.*)", .target_label = "d", .replacement = "ch$1-$1"}},
       {{"a", "foo"}},
       "a=foo d=choo-oo"},
      // A match of a part is none, and changes nothing.
      {{{.source_labels = {"a"}, .regex = "o", .target_label = "d", .replacement = "x"}},
       {{"a", "foo"}, {"d", "old"}},
       "a=foo d=old"},
      // Several sources are joined by the separator; one that is not there is empty.
      {{{.source_labels = {"a", "b"}, .target_label = "d"}},
       {{"a", "1"}, {"b", "2"}},
       "a=1 b=2 d=1;2"},
      {{{.source_labels = {"a", "x", "a"}, .separator = "-", .target_label = "d"}},
       {{"a", "1"}},
       "a=1 d=1--1"},
      {{{.source_labels = {"a", "b"},
         .separator = "",
         .regex = "12",
         .target_label = "d",
         .replacement = "yes"}},
       {{"a", "1"}, {"b", "2"}},
       "a=1 b=2 d=yes"},
      // Without sources the text is empty, which the default expression matches.
      {{{.target_label = "d", .replacement = "always"}}, {}, "d=always"},
      {{{.target_label = "d"}}, {{"d", "old"}}, ""},
      // An empty result removes the label.
      {{{.source_labels = {"a"}, .target_label = "a", .replacement = ""}}, {{"a", "1"}}, ""},
      {{{.source_labels = {"a"}, .regex = "(x)?foo", .target_label = "a"}}, {{"a", "foo"}}, ""},
      // The target's name may come from groups; one that is no name changes nothing.
      {{{.source_labels = {"a"},
         .regex = "(.*)=(.*)",
         .target_label = "${1}_x",
         .replacement = "$2"}},
       {{"a", "foo=bar"}},
       "a=foo=bar foo_x=bar"},
      {{{.source_labels = {"a"}, .regex = "(.*)=(.*)", .target_label = "$1", .replacement = "$2"}},
       {{"a", "f-o=bar"}},
       "a=f-o=bar"},
      {{{.source_labels = {"a"}, .regex = "(.*)=(.*)", .target_label = "$1", .replacement = "$2"}},
       {{"a", "=bar"}},
       "a==bar"},
      {{{.source_labels = {"a"},
         .regex = "(?P<first>[^.]*)[.].*",
         .target_label = "b",
         .replacement = "${first}"}},
       {{"a", "web.service"}},
       "a=web.service b=web"},
      // A dot matches line ends.
      {{{.source_labels = {"a", "b"},
         .separator = "\n",
         .regex = "1.2",
         .target_label = "d",
         .replacement = "x"}},
       {{"a", "1"}, {"b", "2"}},
       "a=1 b=2 d=x"},
  });
}

TEST(Relabeling, KeepsAndDrops) {
  Check({
      {{{.action = Action::kDrop, .source_labels = {"a"}, .regex = "f.o"}},
       {{"a", "foo"}},
       "dropped by rule 0"},
      {{{.action = Action::kDrop, .source_labels = {"a"}, .regex = "f|o"}},
       {{"a", "foo"}},
       "a=foo"},
      {{{.action = Action::kDrop, .source_labels = {"x"}, .regex = ""}},
       {{"a", "foo"}},
       "dropped by rule 0"},
      {{{.action = Action::kKeep, .source_labels = {"a"}, .regex = "f.o"}},
       {{"a", "foo"}},
       "a=foo"},
      {{{.action = Action::kKeep, .source_labels = {"a"}, .regex = "no"}},
       {{"a", "foo"}},
       "dropped by rule 0"},
      {{{.action = Action::kKeep, .source_labels = {"x"}, .regex = ".+"}},
       {{"a", "foo"}},
       "dropped by rule 0"},
      // Later rules are not asked, and see what earlier ones made.
      {{{.source_labels = {"a"}, .target_label = "b"},
        {.action = Action::kDrop, .source_labels = {"b"}, .regex = "foo"},
        {.target_label = "c", .replacement = "never"}},
       {{"a", "foo"}},
       "dropped by rule 1"},
  });
}

TEST(Relabeling, ComparesLabels) {
  const RelabelRule keep{.action = Action::kKeepEqual, .source_labels = {"a"}, .target_label = "b"};
  const RelabelRule drop{.action = Action::kDropEqual, .source_labels = {"a"}, .target_label = "b"};
  const RelabelRule joined{
      .action = Action::kKeepEqual, .source_labels = {"a", "c"}, .target_label = "b"};
  Check({
      {{keep}, {{"a", "1"}, {"b", "1"}}, "a=1 b=1"},
      {{keep}, {{"a", "1"}, {"b", "2"}}, "dropped by rule 0"},
      {{keep}, {{"a", "1"}}, "dropped by rule 0"},
      {{keep}, {{"c", "1"}}, "c=1"},  // both are empty
      {{drop}, {{"a", "1"}, {"b", "1"}}, "dropped by rule 0"},
      {{drop}, {{"a", "1"}, {"b", "2"}}, "a=1 b=2"},
      {{joined}, {{"a", "1"}, {"b", "1;2"}, {"c", "2"}}, "a=1 b=1;2 c=2"},
  });
}

// Python: int.from_bytes(hashlib.md5(text).digest()[8:], "big") % 1000
TEST(Relabeling, HashesLikePrometheus) {
  const RelabelRule rule{.action = Action::kHashMod,
                         .source_labels = {"a", "b", "c"},
                         .modulus = 1000,
                         .target_label = "d"};
  Check({
      {{rule}, {{"a", "foo"}, {"b", "bar"}, {"c", "baz"}}, "a=foo b=bar c=baz d=719"},
      // The example of Prometheus' own test.
      {{{.action = Action::kHashMod, .source_labels = {"c"}, .modulus = 1000, .target_label = "d"}},
       {{"c", "baz"}},
       "c=baz d=976"},
      {{{.action = Action::kHashMod, .source_labels = {"b"}, .modulus = 1000, .target_label = "d"}},
       {{"b", "bar"}},
       "b=bar d=922"},
      {{{.action = Action::kHashMod, .modulus = 8, .target_label = "d"}}, {}, "d=6"},
  });
}

TEST(Relabeling, MapsDropsAndKeepsLabelsByTheirNames) {
  const Labels labels = {{"a", "1"}, {"b1", "2"}, {"b2", "3"}};
  Check({
      {{{.action = Action::kLabelMap, .regex = "b(.*)", .replacement = "pod_${1}"}},
       labels,
       "a=1 b1=2 b2=3 pod_1=2 pod_2=3"},
      {{{.action = Action::kLabelMap, .regex = "(b)."}}, labels, "a=1 b=3 b1=2 b2=3"},
      {{{.action = Action::kLabelMap, .regex = "a(.*)"}}, labels, "a=1 b1=2 b2=3"},  // no name
      // What it adds is not mapped again.
      {{{.action = Action::kLabelMap, .regex = "(b.*)", .replacement = "b$1"}},
       labels,
       "a=1 b1=2 b2=3 bb1=2 bb2=3"},
      {{{.action = Action::kLabelDrop, .regex = "b."}}, labels, "a=1"},
      {{{.action = Action::kLabelDrop, .regex = "b"}}, labels, "a=1 b1=2 b2=3"},
      {{{.action = Action::kLabelKeep, .regex = "b."}}, labels, "b1=2 b2=3"},
      {{{.action = Action::kLabelMap, .regex = "__meta_(.+)"}}, {{"__meta_x", "1"}}, "x=1"},
  });
}

TEST(Relabeling, ChangesTheCaseOfLetters) {
  Check({
      {{{.action = Action::kLowercase, .source_labels = {"a"}, .target_label = "b"},
        {.action = Action::kUppercase, .source_labels = {"a", "b"}, .target_label = "c"}},
       {{"a", "NginX"}},
       "a=NginX b=nginx c=NGINX;NGINX"},
      {{{.action = Action::kLowercase, .source_labels = {"x"}, .target_label = "a"}},
       {{"a", "1"}},
       ""},
  });
}

TEST(Relabeling, RemovesPrivateLabelsAtTheEnd) {
  Check({
      {{}, {{"__meta_a", "1"}, {"_b", "2"}, {"c", "3"}}, "_b=2 c=3"},
      {{{.source_labels = {"__meta_a"}, .target_label = "__tmp"},
        {.source_labels = {"__tmp"}, .target_label = "d"}},
       {{"__meta_a", "1"}},
       "d=1"},
  });
}

TEST(Relabeling, NamesTheRuleThatIsWrong) {
  const Result<Relabeling> relabeling = Relabeling::Compile(Rules{{.target_label = "a"}, {}});
  ASSERT_FALSE(relabeling.has_value());
  EXPECT_EQ(relabeling.error().code(), ErrorCode::kInvalid);
  EXPECT_THAT(relabeling.error().message(), HasSubstr("rule 1: target_label: is missing"));
  EXPECT_FALSE(Relabeling::Compile(Rules(101, {.target_label = "a"})).has_value());
}

TEST(Relabeling, KeepsForeignValuesFromGrowing) {
  const RelabelRule twice{.source_labels = {"a"}, .target_label = "a", .replacement = "$1$1"};
  const Relabeled grown = Compiled(Rules(60, twice)).Apply({{"a", "foo"}});
  EXPECT_EQ(grown.labels.at(0).second.size(), Relabeling::kLongestValue);
  Rules many;
  for (int i = 0; i < 20; ++i) {
    many.push_back({.action = Action::kLabelMap, .replacement = fmt::format("x{}_$1", i)});
  }
  EXPECT_EQ(Compiled(many).Apply({{"a", "foo"}}).labels.size(), Relabeling::kMostLabels);
}

// A pod may have hundreds of annotations.
TEST(Relabeling, HasRoomForLabelsBesideManyMetaLabels) {
  Labels labels;
  for (int i = 100; i < 900; ++i) labels.emplace_back(fmt::format("__meta_{}", i), "x");
  const Rules rules = {{.source_labels = {"__meta_899"}, .target_label = "a"}};
  EXPECT_THAT(Compiled(rules).Apply(labels).labels, ElementsAre(Pair("a", "x")));
  Rules many;
  for (int i = 0; i < 20; ++i) {
    many.push_back({.action = Action::kLabelMap, .regex = "__(.*)", .replacement = "__x$1"});
  }
  many.push_back({.action = Action::kLabelMap, .regex = "__(.*)"});
  EXPECT_EQ(Compiled(many).Apply(labels).labels.size(), Relabeling::kMostLabels);
}

TEST(Relabeling, LeavesValuesPrintable) {
  // \C is a byte, also in the middle of a character.
  const Rules rules = {{.source_labels = {"a"}, .regex = R"((\C)\C)", .target_label = "b"}};
  EXPECT_THAT(Compiled(rules).Apply({{"a", "\u00e4"}}).labels,
              ElementsAre(Pair("a", "\u00e4"), Pair("b", "\uFFFD")));
}

TEST(Relabeling, ExplainsWhatEachRuleDid) {
  const Rules rules = {{.source_labels = {"a", "b"}, .target_label = "c"},
                       {.target_label = "a", .replacement = "changed"},
                       {.action = Action::kLabelDrop, .regex = "b"},
                       {.source_labels = {"a"}, .regex = "no", .target_label = "d"},
                       {.action = Action::kDrop, .source_labels = {"c"}, .regex = "1;2"},
                       {.target_label = "never", .replacement = "x"}};
  const std::vector<RelabelStep> steps = Compiled(rules).Explain({{"a", "1"}, {"b", "2"}});
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].sources, "1;2");
  ASSERT_EQ(steps[0].changes.size(), 1U);
  EXPECT_EQ(steps[0].changes[0].name, "c");
  EXPECT_EQ(steps[0].changes[0].before, std::nullopt);
  EXPECT_EQ(steps[0].changes[0].after, "1;2");
  EXPECT_EQ(steps[1].changes.at(0).before, "1");
  EXPECT_EQ(steps[1].changes.at(0).after, "changed");
  EXPECT_EQ(steps[2].changes.at(0).name, "b");
  EXPECT_EQ(steps[2].changes.at(0).after, std::nullopt);
  EXPECT_THAT(steps[3].changes, IsEmpty());
  EXPECT_FALSE(steps[3].drops);
  EXPECT_TRUE(steps[4].drops);
}

TEST(Relabeling, KnowsWhichLabelsItReads) {
  const Relabeling relabeling =
      Compiled({{.source_labels = {"a"}, .target_label = "b"},
                {.action = Action::kDropEqual, .source_labels = {"c"}, .target_label = "d"},
                {.action = Action::kLabelMap, .regex = "__meta_(.*)"},
                {.action = Action::kLabelDrop, .regex = "e"}});
  for (const char* name : {"a", "c", "d", "__meta_x"}) EXPECT_TRUE(relabeling.Reads(name)) << name;
  for (const char* name : {"b", "e", "meta"}) EXPECT_FALSE(relabeling.Reads(name)) << name;
}

// Whether the last rule decides without regard to `comm`, and what was made of it.
bool DecidesWithoutComm(const Rules& rules) {
  constexpr std::array<std::string_view, 1> kOthers = {"comm"};
  return Compiled(rules).DecidesWithout(rules.size() - 1, kOthers);
}

TEST(Relabeling, KnowsWhatADecisionDependsOn) {
  const auto drop = [](std::vector<std::string> sources) {
    return RelabelRule{.action = Action::kDrop, .source_labels = std::move(sources), .regex = "x"};
  };
  const RelabelRule by_comm{.source_labels = {"comm"}, .target_label = "app"};
  EXPECT_TRUE(DecidesWithoutComm({drop({"cgroup"})}));
  EXPECT_TRUE(DecidesWithoutComm({by_comm, drop({"cgroup"})}));
  EXPECT_TRUE(
      DecidesWithoutComm({{.source_labels = {"cgroup"}, .target_label = "app"}, drop({"app"})}));
  EXPECT_TRUE(DecidesWithoutComm({{.action = Action::kLabelDrop, .regex = "comm"}, drop({"a"})}));
  EXPECT_TRUE(DecidesWithoutComm({drop({"comm"}), drop({"cgroup"})})) << "both drop";
  EXPECT_FALSE(DecidesWithoutComm({drop({"comm"})}));
  EXPECT_FALSE(DecidesWithoutComm({drop({"cgroup", "comm"})}));
  EXPECT_FALSE(DecidesWithoutComm({by_comm, drop({"app"})}));
  EXPECT_FALSE(
      DecidesWithoutComm({by_comm, {.source_labels = {"app"}, .target_label = "b"}, drop({"b"})}));
  // A rule that does not match by the name leaves its trace, too.
  EXPECT_FALSE(DecidesWithoutComm(
      {{.source_labels = {"comm"}, .regex = "no", .target_label = "cgroup"}, drop({"cgroup"})}));
  EXPECT_FALSE(DecidesWithoutComm(
      {{.source_labels = {"comm"}, .target_label = "x_${1}"}, drop({"cgroup"})}));
  EXPECT_FALSE(
      DecidesWithoutComm({{.action = Action::kLabelMap, .regex = "(co)mm"}, drop({"co"})}));
  EXPECT_TRUE(DecidesWithoutComm({{.action = Action::kLabelMap, .regex = "(cg).*"}, drop({"cg"})}));
  EXPECT_FALSE(DecidesWithoutComm(
      {{.action = Action::kHashMod, .source_labels = {"comm"}, .modulus = 2, .target_label = "m"},
       drop({"m"})}));
  EXPECT_FALSE(DecidesWithoutComm(
      {{.action = Action::kKeepEqual, .source_labels = {"cgroup"}, .target_label = "comm"}}));
}

}  // namespace
}  // namespace pyrometer
