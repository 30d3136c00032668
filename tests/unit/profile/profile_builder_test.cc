// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;

ProfileBuilder MakeBuilder() {
  return ProfileBuilder({.start = {}, .frequency = Hertz{99}, .labels = {{"team", "db"}}});
}

// A window in the making; stacks leaf first, as the sampler gives them.
class MadeWindow {
 public:
  MadeWindow& AddStack(const std::vector<LocationRef>& kernel, const std::vector<LocationRef>& user,
                       StackEnd end = StackEnd::kComplete) {
    named_.window.stacks.push_back({.first_frame = static_cast<uint32_t>(named_.locations.size()),
                                    .kernel_frames = static_cast<uint16_t>(kernel.size()),
                                    .user_frames = static_cast<uint16_t>(user.size()),
                                    .end = end});
    named_.locations.insert(named_.locations.end(), kernel.begin(), kernel.end());
    named_.locations.insert(named_.locations.end(), user.begin(), user.end());
    named_.window.frames.resize(named_.locations.size());
    return *this;
  }

  // Of the stack added last.
  MadeWindow& AddSample(ProcessKey process, std::string thread, uint64_t count) {
    named_.window.samples.push_back(
        {.process = process,
         .exec = ExecId(0),
         .comm = "app",
         .thread = std::move(thread),
         .stack = static_cast<uint32_t>(named_.window.stacks.size() - 1),
         .count = count,
         .first_seen = {},
         .last_seen = {}});
    return *this;
  }

  const NamedWindow& named() const { return named_; }

 private:
  NamedWindow named_;
};

constexpr ProcessKey kProcess{Pid(7), StartTime(100)};
constexpr ProcessKey kReusedPid{Pid(7), StartTime(200)};

TEST(ProfileBuilder, PutsKernelFramesBeforeUserFrames) {
  const LocationRef kernel = MakeLocation("sys_read", CodeOrigin::kKernel);
  const LocationRef leaf = MakeLocation("read");
  const LocationRef root = MakeLocation("main");
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow().AddStack({kernel}, {leaf, root}).AddSample(kProcess, "t", 3).named());
  const Profile profile = std::move(builder).Finish(std::chrono::seconds(1));
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_THAT(profile.locations, ElementsAre(kernel, leaf, root));
  EXPECT_THAT(profile.samples[0].stack, ElementsAre(0, 1, 2));
}

TEST(ProfileBuilder, AddsUpEqualSamplesOverWindows) {
  const LocationRef leaf = MakeLocation("leaf");
  const LocationRef other = MakeLocation("other");
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow().AddStack({}, {leaf}).AddSample(kProcess, "t", 3).named());
  builder.Add(MadeWindow()
                  .AddStack({}, {other})
                  .AddSample(kProcess, "t", 10)
                  .AddStack({}, {leaf})
                  .AddSample(kProcess, "t", 4)
                  .named());
  const Profile profile = std::move(builder).Finish(std::chrono::seconds(1));
  ASSERT_EQ(profile.samples.size(), 2);
  EXPECT_EQ(profile.samples[0].count, 7);
  EXPECT_EQ(profile.samples[1].count, 10);
  EXPECT_THAT(profile.locations, ElementsAre(leaf, other));
}

TEST(ProfileBuilder, KeepsApartWhatDiffersInProcessThreadOrEnd) {
  const LocationRef leaf = MakeLocation("leaf");
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow()
                  .AddStack({}, {leaf})
                  .AddSample(kProcess, "t", 1)
                  .AddSample(kReusedPid, "t", 1)
                  .AddSample(kProcess, "u", 1)
                  .AddStack({}, {leaf}, StackEnd::kTruncated)
                  .AddSample(kProcess, "t", 1)
                  .named());
  EXPECT_EQ(std::move(builder).Finish(std::chrono::seconds(1)).samples.size(), 4);
}

TEST(ProfileBuilder, KeepsSamplesWithoutAnyFrame) {
  ProfileBuilder builder = MakeBuilder();
  builder.Add(
      MadeWindow().AddStack({}, {}, StackEnd::kUnreadable).AddSample(kProcess, "t", 5).named());
  const Profile profile = std::move(builder).Finish(std::chrono::seconds(1));
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_TRUE(profile.samples[0].stack.empty());
  EXPECT_EQ(profile.samples[0].count, 5);
}

TEST(ProfileBuilder, CarriesWhatItWasToldOverToTheProfile) {
  const auto start = std::chrono::system_clock::time_point(std::chrono::seconds(5));
  ProfileBuilder builder({.start = start, .frequency = Hertz{99}, .labels = {{"team", "db"}}});
  const Profile profile = std::move(builder).Finish(std::chrono::seconds(3));
  EXPECT_EQ(profile.start, start);
  EXPECT_EQ(profile.duration, std::chrono::seconds(3));
  EXPECT_EQ(profile.frequency, Hertz{99});
  EXPECT_THAT(profile.labels, ElementsAre(testing::Pair("team", "db")));
}

TEST(ProfileBuilder, CanBeMovedBetweenWindows) {
  const LocationRef leaf = MakeLocation("leaf");
  ProfileBuilder first = MakeBuilder();
  first.Add(MadeWindow().AddStack({}, {leaf}).AddSample(kProcess, "t", 1).named());
  ProfileBuilder second = std::move(first);
  second.Add(MadeWindow().AddStack({}, {leaf}).AddSample(kProcess, "t", 1).named());
  const Profile profile = std::move(second).Finish(std::chrono::seconds(1));
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].count, 2);
}

}  // namespace
}  // namespace pyrometer
