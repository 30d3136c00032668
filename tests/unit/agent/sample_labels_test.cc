// SPDX-License-Identifier: Apache-2.0
#include "agent/sample_labels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::Pair;

ProfileSample SampleOf(uint32_t pid, std::string comm, std::string thread, uint64_t count) {
  ProfileSample sample;
  sample.process = {Pid(pid), StartTime(1)};
  sample.comm = std::move(comm);
  sample.thread = std::move(thread);
  sample.stack = {0};
  sample.count = count;
  return sample;
}

Profile Whole() {
  Profile profile;
  profile.labels = {{"service_name", "shop"}};
  profile.locations.push_back(std::make_shared<const Location>());
  profile.samples = {SampleOf(1, "nginx", "", 1), SampleOf(1, "nginx", "worker", 2),
                     SampleOf(2, "nginx", "", 4), SampleOf(3, "redis", "", 8)};
  return profile;
}

// {"comm=nginx service_name=shop": ticks}
std::map<std::string, uint64_t> Split(const SampleLabels& wanted, Profile whole = Whole(),
                                      size_t most = 100) {
  std::map<std::string, uint64_t> ticks;
  std::vector<Profile> profiles;
  profiles.push_back(std::move(whole));
  for (const Profile& profile : SplitBySampleLabels(std::move(profiles), wanted, most)) {
    std::string text;
    for (const auto& [name, value] : profile.labels) text += fmt::format("{}={} ", name, value);
    for (const ProfileSample& sample : profile.samples) ticks[text] += sample.count;
  }
  return ticks;
}

TEST(SplitBySampleLabels, MakesAProfileOfEachValue) {
  EXPECT_THAT(Split({.comm = true}), ElementsAre(Pair("comm=nginx service_name=shop ", 7),
                                                 Pair("comm=redis service_name=shop ", 8)));
  EXPECT_THAT(Split({.pid = true}),
              ElementsAre(Pair("pid=1 service_name=shop ", 3), Pair("pid=2 service_name=shop ", 4),
                          Pair("pid=3 service_name=shop ", 8)));
  EXPECT_THAT(Split({.thread = true}), ElementsAre(Pair("service_name=shop thread=nginx ", 5),
                                                   Pair("service_name=shop thread=redis ", 8),
                                                   Pair("service_name=shop thread=worker ", 2)));
}

TEST(SplitBySampleLabels, TakesThemAllTogether) {
  EXPECT_EQ(Split({.comm = true, .pid = true, .thread = true}).size(), 4);
}

TEST(SplitBySampleLabels, LetsALabelThatTheProfileHasBe) {
  Profile whole = Whole();
  whole.labels = {{"comm", "by a rule"}};
  EXPECT_THAT(Split({.comm = true}, std::move(whole)), ElementsAre(Pair("comm=by a rule ", 15)));
}

TEST(SplitBySampleLabels, KeepsTogetherWhatIsTooMuch) {
  EXPECT_THAT(Split({.pid = true}, Whole(), 2),
              ElementsAre(Pair("pid=1 service_name=shop ", 3), Pair("pid=2 service_name=shop ", 4),
                          Pair("service_name=shop ", 8)));
}

}  // namespace
}  // namespace pyrometer
