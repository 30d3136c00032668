// SPDX-License-Identifier: Apache-2.0
#include "agent/recent_windows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/unit/agent/named_window.h"

namespace pyrometer {
namespace {

using std::chrono::seconds;
using testing::UnorderedElementsAre;

std::chrono::system_clock::time_point At(int second) {
  return std::chrono::system_clock::time_point(seconds(second));
}

// The profiles of a second in which two services had a sample each.
ShippedWindow Second(int second) {
  ShippedWindow shipped;
  const Clock clock;
  WindowShipper shipper(
      {}, [&](const ShippedWindow& window) { shipped = window; }, clock);
  NamedWindow window = EmptyWindow(second);
  AddSamples(window, "nginx", 1);
  AddSamples(window, "redis", 2);
  shipper.Consume({.window = std::make_shared<const NamedWindow>(std::move(window)),
                   .ends_period = true,
                   .missed = {}});
  return shipped;
}

uint64_t SamplesOf(const Profile& profile) {
  uint64_t sum = 0;
  for (const ProfileSample& sample : profile.samples) sum += sample.count;
  return sum;
}

TEST(RecentWindows, JoinsTheWindowsSinceAMoment) {
  RecentWindows windows(1 << 20);
  for (int second = 1; second <= 4; ++second) windows.Add(Second(second));
  const Profile profile = windows.Since(At(3)).profile;
  EXPECT_EQ(SamplesOf(profile), 6);
  EXPECT_EQ(profile.begin, At(3));
  EXPECT_EQ(profile.end, At(5));
  EXPECT_EQ(profile.duration, seconds(2));
  EXPECT_EQ(profile.accounting.exported, 6);
}

TEST(RecentWindows, KeepsEachSampleUnderItsName) {
  RecentWindows windows(1 << 20);
  windows.Add(Second(1));
  const Profile profile = windows.Since(At(0)).profile;
  std::set<std::string> pairs;
  for (const ProfileSample& sample : profile.samples) {
    pairs.insert(sample.comm + " " + profile.locations.at(sample.stack.at(0))->lines[0].function);
  }
  EXPECT_THAT(pairs, UnorderedElementsAre("nginx nginx", "redis redis"));
}

TEST(RecentWindows, CountsTheNamesOfItsLocationsOnce) {
  const auto with_name = [](size_t length) {
    auto location = std::make_shared<Location>();
    location->lines.emplace_back().function = std::string(length, 'f');
    Profile profile;
    profile.locations.push_back(std::move(location));
    return std::make_shared<const std::vector<Profile>>(std::vector{profile, profile});
  };
  RecentWindows windows(1 << 20);
  const ShippedWindow window = with_name(10'000);
  windows.Add(window);
  const size_t one = windows.bytes();
  EXPECT_GT(one, 10'000);
  windows.Add(window);
  EXPECT_LT(windows.bytes(), one + 10'000);
  windows.Add(with_name(5'000));
  EXPECT_GT(windows.bytes(), one + 5'000);
  windows.Shed();
  EXPECT_LT(windows.bytes(), 10'000) << "the latest is left";
}

TEST(RecentWindows, DropsTheOldestBeyondItsBudget) {
  RecentWindows one(1 << 20);
  one.Add(Second(1));
  RecentWindows windows(one.bytes() * 3);
  for (int second = 1; second <= 10; ++second) windows.Add(Second(second));
  EXPECT_EQ(windows.Since(At(0)).profile.begin, At(8));
  EXPECT_LE(windows.bytes(), one.bytes() * 3);
}

TEST(RecentWindows, DropsWhatNobodyCanAskForAnyMore) {
  RecentWindows windows(1 << 20);
  windows.Add(Second(0));
  windows.Add(Second(100));
  windows.Add(Second(3650));
  EXPECT_EQ(windows.Since(At(0)).profile.begin, At(100));
}

TEST(RecentWindows, KeepsOnlyTheLatestWhenMemoryIsShort) {
  RecentWindows windows(1 << 20);
  for (int second = 1; second <= 5; ++second) windows.Add(Second(second));
  windows.Shed();
  EXPECT_EQ(SamplesOf(windows.Since(At(0)).profile), 3);
}

TEST(RecentWindows, IsEmptyAtFirst) {
  EXPECT_TRUE(RecentWindows(1 << 20).Since(At(0)).profile.samples.empty());
}

TEST(RecentWindows, KeepsWhatIsAskedForAndSaysOfHowMuch) {
  RecentWindows windows(1 << 20);
  for (int second = 1; second <= 4; ++second) windows.Add(Second(second));
  const auto recent = windows.Since(At(3), [](const ProfileSample&, const Labels& common) {
    return common.at(0).second == "redis";
  });
  EXPECT_EQ(SamplesOf(recent.profile), 4);
  EXPECT_EQ(recent.samples, 6);
  EXPECT_EQ(recent.profile.duration, seconds(2));
  EXPECT_EQ(recent.profile.begin, At(3));
  for (const ProfileSample& sample : recent.profile.samples) EXPECT_EQ(sample.comm, "redis");
  const auto none = windows.Since(At(3), [](const auto&, const auto&) { return false; });
  EXPECT_TRUE(none.profile.samples.empty());
  EXPECT_TRUE(none.profile.locations.empty());
  EXPECT_EQ(none.samples, 6);
}

ShippedWindow Labelled(const std::vector<std::pair<Labels, uint64_t>>& profiles,
                       Hertz frequency = {99}) {
  std::vector<Profile> window;
  for (const auto& [labels, samples] : profiles) {
    Profile& profile = window.emplace_back();
    profile.frequency = frequency;
    profile.labels = labels;
    profile.samples.emplace_back().count = samples;
  }
  return std::make_shared<const std::vector<Profile>>(std::move(window));
}

TEST(RecentWindows, TellTheLowestFrequency) {
  RecentWindows windows(1 << 20);
  for (const uint32_t hertz : {99U, 49U, 75U}) windows.Add(Labelled({{{}, 1}}, {hertz}));
  const auto recent = windows.Since({});
  EXPECT_EQ(recent.lowest.value, 49);
  EXPECT_EQ(recent.profile.frequency.value, 75);
}

TEST(RecentWindows, OfferTheLabelsInWhichSamplesDiffer) {
  RecentWindows windows(1 << 20);
  windows.Add(Labelled({{{{"node", "n"}, {"pod", "web"}, {"team", "blue"}}, 5},
                        {{{"node", "n"}, {"pod", "db"}}, 7}}));
  windows.Add(Labelled({{{{"node", "n"}, {"pod", "web"}, {"team", "blue"}}, 3}}));
  const std::vector<LabelChoice> choices = windows.Choices({});
  ASSERT_EQ(choices.size(), 2U) << "all have the same node";
  EXPECT_EQ(choices[0].name, "pod");
  ASSERT_EQ(choices[0].values.size(), 2U);
  EXPECT_EQ(choices[0].values[0].value, "web");
  EXPECT_EQ(choices[0].values[0].samples, 8);
  EXPECT_EQ(choices[0].values[1].value, "db");
  EXPECT_EQ(choices[1].name, "team") << "not all have one";
}

TEST(RecentWindows, OfferFewOfManyLabelsAndValues) {
  RecentWindows windows(1 << 24);
  std::vector<std::pair<Labels, uint64_t>> profiles;
  for (int i = 0; i < 150; ++i) {
    Labels labels;
    for (int name = 0; name < 12; ++name)
      labels.emplace_back(fmt::format("l{:02}", name), fmt::to_string(i));
    labels.emplace_back("namespace", fmt::to_string(i));
    profiles.emplace_back(std::move(labels), 1);
  }
  windows.Add(Labelled(profiles));
  const std::vector<LabelChoice> choices = windows.Choices({});
  ASSERT_EQ(choices.size(), LabelChoice::kMostLabels);
  EXPECT_EQ(choices[0].name, "namespace");
  EXPECT_EQ(choices[1].name, "l00");
  EXPECT_EQ(choices[0].values.size(), LabelChoice::kMostValues);
  EXPECT_EQ(choices[0].left_out, 50);
}

}  // namespace
}  // namespace pyrometer
