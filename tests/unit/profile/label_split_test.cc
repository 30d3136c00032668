// SPDX-License-Identifier: Apache-2.0
#include "profile/label_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

LabelSet Of(std::string container) {
  return std::make_shared<const Labels>(Labels{{"container_id", std::move(container)}});
}

// Samples 1, 2 and 4 of containers one, two and one, and 8 without labels.
Profile FourSamples() {
  const LabelSet one = Of("one");
  MadeProfile made;
  made.Add({MakeLocation("main"), MakeLocation("a")}, 1, {.labels = one})
      .Add({MakeLocation("main"), MakeLocation("b")}, 2, {.labels = Of("two")})
      .Add({MakeLocation("main"), MakeLocation("c")}, 4, {.labels = one})
      .Add({MakeLocation("main")}, 8, {});
  Profile profile = std::move(made.profile());
  profile.labels = {{"node", "n1"}};
  profile.accounting.exported = 15;
  return profile;
}

uint64_t Ticks(const Profile& profile) {
  uint64_t ticks = 0;
  for (const ProfileSample& sample : profile.samples) ticks += sample.count;
  return ticks;
}

TEST(SplitByLabels, MakesAProfileOfEachLabelSetThatThereIs) {
  const LabelSplit split = SplitByLabels(FourSamples());
  ASSERT_THAT(split.ready, SizeIs(3));
  EXPECT_FALSE(split.waiting.has_value());
  EXPECT_THAT(split.ready[0].labels, ElementsAre(Pair("container_id", "one"), Pair("node", "n1")));
  EXPECT_EQ(Ticks(split.ready[0]), 5);
  EXPECT_EQ(Ticks(split.ready[1]), 2);
  EXPECT_THAT(split.ready[2].labels, ElementsAre(Pair("node", "n1")));
  for (const Profile& part : split.ready) {
    EXPECT_EQ(part.accounting.exported, 15);
    EXPECT_EQ(part.samples[0].labels, nullptr);
  }
}

TEST(SplitByLabels, TakesOnlyTheLocationsOfEachPart) {
  const LabelSplit split = SplitByLabels(FourSamples());
  const Profile& two = split.ready[1];
  ASSERT_EQ(two.samples[0].stack.size(), 2);
  EXPECT_EQ(two.locations.size(), 2);
  EXPECT_EQ(two.locations[two.samples[0].stack[0]]->lines[0].function, "b");
}

TEST(SplitByLabels, JoinsWhatGetsTheSameLabels) {
  const auto everything_web = [](std::span<const LabelSet> sets) {
    const auto web = [] { return std::make_shared<const Labels>(Labels{{"pod", "web"}}); };
    std::vector<std::optional<LabelSet>> answers;
    for (size_t i = 0; i < sets.size(); ++i) answers.emplace_back(web());
    return answers;
  };
  const LabelSplit split = SplitByLabels(FourSamples(), everything_web);
  ASSERT_THAT(split.ready, SizeIs(2));
  EXPECT_THAT(split.ready[0].labels, ElementsAre(Pair("node", "n1"), Pair("pod", "web")));
  EXPECT_EQ(Ticks(split.ready[0]), 7);
  EXPECT_EQ(Ticks(split.ready[1]), 8);
}

TEST(SplitByLabels, LetsTheProfilesOwnLabelWin) {
  const auto other_node = [](std::span<const LabelSet> sets) {
    return std::vector<std::optional<LabelSet>>(
        sets.size(), std::make_shared<const Labels>(Labels{{"node", "n2"}, {"pod", "web"}}));
  };
  EXPECT_THAT(SplitByLabels(FourSamples(), other_node).ready.at(0).labels,
              ElementsAre(Pair("node", "n1"), Pair("pod", "web")));
}

TEST(SplitByLabels, KeepsWhatIsNotKnownYetAsItCame) {
  const auto only_two = [](std::span<const LabelSet> sets) {
    std::vector<std::optional<LabelSet>> answers;
    for (const LabelSet& labels : sets) {
      answers.push_back(labels->front().second == "two" ? std::optional(labels) : std::nullopt);
    }
    return answers;
  };
  LabelSplit split = SplitByLabels(FourSamples(), only_two);
  ASSERT_THAT(split.ready, SizeIs(2));
  EXPECT_EQ(Ticks(split.ready[0]), 2);
  EXPECT_EQ(Ticks(split.ready[1]), 8);
  ASSERT_TRUE(split.waiting.has_value());
  EXPECT_THAT(split.waiting->samples, SizeIs(2));
  EXPECT_EQ(split.waiting->locations.size(), 4);
  const LabelSplit later = SplitByLabels(*std::move(split.waiting));
  ASSERT_THAT(later.ready, SizeIs(1));
  EXPECT_THAT(later.ready[0].labels, ElementsAre(Pair("container_id", "one"), Pair("node", "n1")));
  EXPECT_EQ(Ticks(later.ready[0]), 5);
}

TEST(SplitByLabels, TakesOutWhatIsDropped) {
  const auto drop_two = [](std::span<const LabelSet> sets) {
    std::vector<std::optional<LabelSet>> answers;
    for (const LabelSet& labels : sets) {
      answers.emplace_back(labels->front().second == "two" ? nullptr : labels);
    }
    return answers;
  };
  const LabelSplit split = SplitByLabels(FourSamples(), drop_two);
  ASSERT_THAT(split.ready, SizeIs(2));
  EXPECT_EQ(Ticks(split.ready[0]), 5);
  EXPECT_EQ(Ticks(split.ready[1]), 8);
  EXPECT_EQ(split.dropped, 2);
}

TEST(SplitByLabels, OfNoSamplesMakesNoProfile) {
  EXPECT_THAT(SplitByLabels(Profile()).ready, IsEmpty());
}

}  // namespace
}  // namespace pyrometer
