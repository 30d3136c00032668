// SPDX-License-Identifier: Apache-2.0
#include "agent/recent_windows.h"

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
  WindowShipper shipper({}, [&](const ShippedWindow& window) { shipped = window; });
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
  const Profile profile = windows.Since(At(3));
  EXPECT_EQ(SamplesOf(profile), 6);
  EXPECT_EQ(profile.begin, At(3));
  EXPECT_EQ(profile.end, At(5));
  EXPECT_EQ(profile.duration, seconds(2));
  EXPECT_EQ(profile.accounting.exported, 6);
}

TEST(RecentWindows, KeepsEachSampleUnderItsName) {
  RecentWindows windows(1 << 20);
  windows.Add(Second(1));
  const Profile profile = windows.Since(At(0));
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
  EXPECT_EQ(windows.Since(At(0)).begin, At(8));
  EXPECT_LE(windows.bytes(), one.bytes() * 3);
}

TEST(RecentWindows, DropsWhatNobodyCanAskForAnyMore) {
  RecentWindows windows(1 << 20);
  windows.Add(Second(0));
  windows.Add(Second(100));
  windows.Add(Second(3650));
  EXPECT_EQ(windows.Since(At(0)).begin, At(100));
}

TEST(RecentWindows, KeepsOnlyTheLatestWhenMemoryIsShort) {
  RecentWindows windows(1 << 20);
  for (int second = 1; second <= 5; ++second) windows.Add(Second(second));
  windows.Shed();
  EXPECT_EQ(SamplesOf(windows.Since(At(0))), 3);
}

TEST(RecentWindows, IsEmptyAtFirst) {
  EXPECT_TRUE(RecentWindows(1 << 20).Since(At(0)).samples.empty());
}

}  // namespace
}  // namespace pyrometer
