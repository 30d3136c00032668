// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "profile/label_split.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr ProcessKey kProcess{Pid(7), StartTime(100)};
constexpr ProcessKey kReusedPid{Pid(7), StartTime(200)};

ProfileBuilder MakeBuilder() {
  return ProfileBuilder({.labels = {{"team", "db"}}});
}

LabelSet MakeLabels(Labels labels) {
  return std::make_shared<const Labels>(std::move(labels));
}

// A frame and its location. Frames of one function are equal.
struct NamedFrame {
  Frame frame;
  LocationRef location;
};

NamedFrame User(uint64_t offset, std::string function) {
  return {Frame::Object(ObjectId(1), ElfAddress(offset)), MakeLocation(std::move(function))};
}

NamedFrame Jit(uint64_t address, std::string function) {
  return {Frame::User(Address(address)), MakeLocation(std::move(function), CodeOrigin::kJit)};
}

// A window in the making; stacks leaf first, as the sampler gives them.
class MadeWindow {
 public:
  MadeWindow() { named_.window.frequency = Hertz{100}; }

  MadeWindow& SetFrequency(uint32_t hertz) {
    named_.window.frequency = Hertz{hertz};
    return *this;
  }

  MadeWindow& AddStack(const std::vector<NamedFrame>& user, StackEnd end = StackEnd::kComplete) {
    named_.window.stacks.push_back({.first_frame = static_cast<uint32_t>(named_.locations.size()),
                                    .kernel_frames = 0,
                                    .user_frames = static_cast<uint16_t>(user.size()),
                                    .end = end});
    for (const NamedFrame& frame : user) {
      named_.window.frames.push_back(frame.frame);
      named_.locations.push_back(frame.location);
    }
    return *this;
  }

  // Of the stack added last.
  MadeWindow& AddSample(ProcessKey process, std::string thread, uint64_t count,
                        LabelSet labels = nullptr) {
    named_.window.samples.push_back(
        {.process = process,
         .exec = ExecId(0),
         .comm = "app",
         .thread = std::move(thread),
         .stack = static_cast<uint32_t>(named_.window.stacks.size() - 1),
         .count = count,
         .first_seen = {},
         .last_seen = {},
         .labels = std::move(labels)});
    return *this;
  }

  Window& window() { return named_.window; }
  const NamedWindow& named() const { return named_; }

 private:
  NamedWindow named_;
};

// The functions of a sample, leaf first.
std::vector<std::string> NamesOf(const Profile& profile, const ProfileSample& sample) {
  std::vector<std::string> names;
  for (const uint32_t id : sample.stack) {
    names.push_back(profile.locations.at(id)->lines[0].function);
  }
  return names;
}

TEST(ProfileBuilder, KeepsTheOrderOfFrames) {
  const NamedFrame kernel{Frame::Kernel(KernelAddress(0xffffffff81000000)),
                          MakeLocation("sys_read", CodeOrigin::kKernel)};
  MadeWindow window;
  window.AddStack({kernel, User(1, "read"), User(2, "main")}).AddSample(kProcess, "t", 3);
  window.window().stacks[0].kernel_frames = 1;
  window.window().stacks[0].user_frames = 2;
  ProfileBuilder builder = MakeBuilder();
  builder.Add(window.named());
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_THAT(NamesOf(profile, profile.samples[0]), ElementsAre("sys_read", "read", "main"));
}

TEST(ProfileBuilder, AddsUpEqualSamplesOverWindows) {
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow().AddStack({User(1, "leaf")}).AddSample(kProcess, "t", 3).named());
  builder.Add(MadeWindow()
                  .AddStack({User(2, "other")})
                  .AddSample(kProcess, "t", 10)
                  .AddStack({User(1, "leaf")})
                  .AddSample(kProcess, "t", 4)
                  .named());
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 2);
  EXPECT_EQ(profile.samples[0].count, 7);
  EXPECT_EQ(profile.samples[1].count, 10);
  EXPECT_EQ(profile.locations.size(), 2);
}

TEST(ProfileBuilder, DoesNotSplitAFunctionThatGetsItsNameLater) {
  Location unnamed = *MakeLocation("app+0x1");
  unnamed.quality = NameQuality::kMadeUp;
  const NamedFrame before{User(1, "").frame, std::make_shared<const Location>(unnamed)};
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow().AddStack({before}).AddSample(kProcess, "t", 3).named());
  builder.Add(MadeWindow().AddStack({User(1, "leaf")}).AddSample(kProcess, "t", 4).named());
  builder.Add(MadeWindow().AddStack({before}).AddSample(kProcess, "t", 5).named());
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].count, 12);
  EXPECT_THAT(NamesOf(profile, profile.samples[0]), ElementsAre("leaf"));
}

TEST(ProfileBuilder, LetsEachSampleKeepTheNameThatItsJitCodeHadThen) {
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow().AddStack({Jit(0x1000, "first")}).AddSample(kProcess, "t", 3).named());
  builder.Add(MadeWindow().AddStack({Jit(0x1000, "second")}).AddSample(kProcess, "t", 4).named());
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 2);
  EXPECT_THAT(NamesOf(profile, profile.samples[0]), ElementsAre("first"));
  EXPECT_THAT(NamesOf(profile, profile.samples[1]), ElementsAre("second"));
}

TEST(ProfileBuilder, TakesAUserAddressForAnotherInEachProcess) {
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow()
                  .AddStack({Jit(0x1000, "mine")})
                  .AddSample(kProcess, "t", 1)
                  .AddStack({Jit(0x1000, "yours")})
                  .AddSample(kReusedPid, "t", 1)
                  .named());
  const Profile profile = std::move(builder).Finish();
  EXPECT_THAT(NamesOf(profile, profile.samples.at(0)), ElementsAre("mine"));
  EXPECT_THAT(NamesOf(profile, profile.samples.at(1)), ElementsAre("yours"));
}

TEST(ProfileBuilder, KeepsApartWhatDiffersInProcessThreadLabelsOrEnd) {
  const auto blue = MakeLabels({{"pod", "blue"}});
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow()
                  .AddStack({User(1, "leaf")})
                  .AddSample(kProcess, "t", 1)
                  .AddSample(kReusedPid, "t", 1)
                  .AddSample(kProcess, "u", 1)
                  .AddSample(kProcess, "t", 1, blue)
                  .AddStack({User(1, "leaf")}, StackEnd::kTruncated)
                  .AddSample(kProcess, "t", 1)
                  .named());
  EXPECT_EQ(std::move(builder).Finish().samples.size(), 5);
}

TEST(ProfileBuilder, ComparesLabelsByWhatTheySay) {
  ProfileBuilder builder = MakeBuilder();
  for (int i = 0; i < 2; ++i) {
    builder.Add(MadeWindow()
                    .AddStack({User(1, "leaf")})
                    .AddSample(kProcess, "t", 1, MakeLabels({{"pod", "blue"}}))
                    .AddSample(kProcess, "u", 1, i == 0 ? nullptr : MakeLabels({}))
                    .named());
  }
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 2);
  EXPECT_THAT(*profile.samples[0].labels, ElementsAre(Pair("pod", "blue")));
  EXPECT_EQ(profile.samples[1].labels, nullptr);
}

TEST(ProfileBuilder, ScalesEachWindowByItsOwnFrequency) {
  ProfileBuilder builder = MakeBuilder();
  for (const uint32_t hertz : {100, 1000}) {
    builder.Add(MadeWindow()
                    .SetFrequency(hertz)
                    .AddStack({User(1, "leaf")})
                    .AddSample(kProcess, "t", hertz)
                    .named());
  }
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].count, 1100);
  EXPECT_EQ(std::chrono::nanoseconds(profile.samples[0].value), seconds(2));
  EXPECT_EQ(profile.frequency, Hertz{1000});
}

TEST(ProfileBuilder, ScalesASampleFromBeforeAChangeByTheFrequencyItWasTakenAt) {
  MadeWindow made;
  made.SetFrequency(1000).AddStack({User(1, "leaf")});
  made.AddSample(kProcess, "t", 100).AddSample(kProcess, "t", 100);
  made.window().samples[1].frequency = Hertz{100};
  ProfileBuilder builder = MakeBuilder();
  builder.Add(made.named());
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].count, 200);
  EXPECT_EQ(std::chrono::nanoseconds(profile.samples[0].value), milliseconds(1100));
}

TEST(ProfileBuilder, ScalesACountedEventByItsPeriod) {
  MadeWindow made;
  made.SetFrequency(0).AddStack({User(1, "leaf")}).AddSample(kProcess, "t", 3);
  made.window().event = {.kind = EventKind::kPageFaults, .period = 10};
  made.window().samples[0].event = EventKind::kPageFaults;
  ProfileBuilder builder = MakeBuilder();
  builder.Add(made.named());
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].count, 3);
  EXPECT_EQ(profile.samples[0].value, 30);
  EXPECT_EQ(profile.Period(), 10);
}

TEST(ProfileBuilder, KnowsTheEventOfAWindowWithoutSamples) {
  MadeWindow made;
  made.window().event = {.kind = EventKind::kPageFaults, .period = 10};
  ProfileBuilder builder = MakeBuilder();
  builder.Add(made.named());
  const Profile profile = std::move(builder).Finish();
  EXPECT_EQ(profile.event, EventKind::kPageFaults);
  EXPECT_EQ(profile.Period(), 10);
  EXPECT_THAT(profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"page-faults", "count"}));
}

TEST(ProfileBuilder, KeepsSamplesWithoutAnyFrame) {
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow().AddStack({}, StackEnd::kUnreadable).AddSample(kProcess, "t", 5).named());
  const Profile profile = std::move(builder).Finish();
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_TRUE(profile.samples[0].stack.empty());
  EXPECT_EQ(profile.samples[0].count, 5);
}

TEST(ProfileBuilder, TakesTimesAndAccountingFromTheWindows) {
  const auto start = std::chrono::system_clock::time_point(seconds(1000));
  ProfileBuilder builder = MakeBuilder();
  for (int i = 0; i < 2; ++i) {
    MadeWindow made;
    Window& window = made.window();
    window.wall_begin = start + seconds(10) * i;
    window.wall_end = window.wall_begin + seconds(3);
    // The monotonic clock knows better how long it was than one that somebody may have set.
    window.begin = MonotonicTime(static_cast<uint64_t>(i) * 10'000'000'000);
    window.end = MonotonicTime(window.begin.value() + 2'500'000'000);
    window.accounting.exported = 5;
    window.accounting.lost[Accounting::kMapBusy] = 1;
    builder.Add(made.named());
  }
  const Profile profile = std::move(builder).Finish();
  EXPECT_EQ(profile.begin, start);
  EXPECT_EQ(profile.end, start + seconds(13));
  EXPECT_EQ(profile.duration, milliseconds(5000));
  EXPECT_EQ(profile.accounting.Ticks(), 12);
  EXPECT_THAT(profile.labels, ElementsAre(Pair("team", "db")));
  EXPECT_EQ(profile.event, EventKind::kCpuClock);
  EXPECT_THAT(profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"cpu", "nanoseconds"}));
}

TEST(ProfileBuilder, OfNoWindowMakesAnEmptyProfile) {
  const Profile profile = MakeBuilder().Finish();
  EXPECT_THAT(profile.samples, IsEmpty());
  EXPECT_EQ(profile.value_types.size(), 2);
  EXPECT_THAT(MakeBuilder().FinishByEvents(), IsEmpty());
}

std::vector<Profile> FinishByLabels(ProfileBuilder builder) {
  std::vector<Profile> profiles;
  for (Profile& profile : std::move(builder).FinishByEvents()) {
    std::ranges::move(SplitByLabels(std::move(profile)).ready, std::back_inserter(profiles));
  }
  return profiles;
}

TEST(ProfileBuilder, MakesAProfileForEachLabelSet) {
  ProfileBuilder builder = MakeBuilder();
  MadeWindow made;
  made.AddStack({User(1, "shared"), User(2, "main")})
      .AddSample(kProcess, "t", 1, MakeLabels({{"pod", "blue"}}))
      .AddStack({User(3, "lone"), User(2, "main")})
      .AddSample(kReusedPid, "t", 2, MakeLabels({{"pod", "red"}}))
      .AddSample(kReusedPid, "u", 4);
  made.window().accounting.exported = 7;
  builder.Add(made.named());
  const std::vector<Profile> profiles = FinishByLabels(std::move(builder));
  ASSERT_EQ(profiles.size(), 3);
  EXPECT_THAT(profiles[0].labels, ElementsAre(Pair("pod", "blue"), Pair("team", "db")));
  EXPECT_THAT(profiles[1].labels, ElementsAre(Pair("pod", "red"), Pair("team", "db")));
  EXPECT_THAT(profiles[2].labels, ElementsAre(Pair("team", "db")));
  for (const Profile& profile : profiles) {
    ASSERT_EQ(profile.samples.size(), 1);
    EXPECT_EQ(profile.locations.size(), 2);
    EXPECT_EQ(profile.samples[0].labels, nullptr);
    EXPECT_EQ(profile.accounting.exported, 7);
  }
  EXPECT_THAT(NamesOf(profiles[0], profiles[0].samples[0]), ElementsAre("shared", "main"));
  EXPECT_THAT(NamesOf(profiles[1], profiles[1].samples[0]), ElementsAre("lone", "main"));
  EXPECT_EQ(profiles[1].samples[0].count, 2);
}

TEST(ProfileBuilder, MakesAProfileForEachEventKind) {
  constexpr auto kOther = EventKind::kPageFaults;
  MadeWindow made;
  made.AddStack({User(1, "leaf")}).AddSample(kProcess, "t", 1).AddSample(kProcess, "t", 2);
  made.window().samples[1].event = kOther;
  ProfileBuilder builder = MakeBuilder();
  builder.Add(made.named());
  const std::vector<Profile> profiles = FinishByLabels(std::move(builder));
  ASSERT_EQ(profiles.size(), 2);
  EXPECT_EQ(profiles[0].event, EventKind::kCpuClock);
  EXPECT_EQ(profiles[0].samples[0].count, 1);
  EXPECT_EQ(profiles[1].event, kOther);
  EXPECT_EQ(profiles[1].samples[0].count, 2);
}

TEST(ProfileBuilder, LetsTheUsersLabelWin) {
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow()
                  .AddStack({User(1, "leaf")})
                  .AddSample(kProcess, "t", 1, MakeLabels({{"pod", "blue"}, {"team", "other"}}))
                  .named());
  EXPECT_THAT(FinishByLabels(std::move(builder)).at(0).labels,
              ElementsAre(Pair("pod", "blue"), Pair("team", "db")));
}

TEST(ProfileBuilder, MakesOneProfileOfSetsThatTheUsersLabelsMakeEqual) {
  ProfileBuilder builder = MakeBuilder();
  builder.Add(MadeWindow()
                  .AddStack({User(1, "leaf")})
                  .AddSample(kProcess, "t", 1, MakeLabels({{"pod", "blue"}, {"team", "other"}}))
                  .AddSample(kProcess, "t", 2, MakeLabels({{"pod", "blue"}, {"team", "third"}}))
                  .AddSample(kProcess, "t", 4, MakeLabels({{"pod", "blue"}}))
                  .AddSample(kReusedPid, "t", 8, MakeLabels({{"team", "other"}}))
                  .AddSample(kReusedPid, "t", 16)
                  .named());
  const std::vector<Profile> profiles = FinishByLabels(std::move(builder));
  ASSERT_EQ(profiles.size(), 2);
  EXPECT_THAT(profiles[0].labels, ElementsAre(Pair("pod", "blue"), Pair("team", "db")));
  EXPECT_THAT(profiles[1].labels, ElementsAre(Pair("team", "db")));
  ASSERT_EQ(profiles[0].samples.size(), 1) << "one and the same";
  EXPECT_EQ(profiles[0].samples[0].count, 7);
  ASSERT_EQ(profiles[1].samples.size(), 1);
  EXPECT_EQ(profiles[1].samples[0].count, 24);
}

TEST(ProfileBuilder, SortsTheUsersLabelsAndTakesTheLastOfAName) {
  ProfileBuilder builder({.labels = {{"team", "db"}, {"shift", "a"}, {"team", "web"}}});
  EXPECT_THAT(std::move(builder).Finish().labels,
              ElementsAre(Pair("shift", "a"), Pair("team", "web")));
}

TEST(ProfileBuilder, KeepsNothingOfWindowsThatHadNothingNew) {
  ProfileBuilder builder = MakeBuilder();
  std::vector<std::weak_ptr<const Location>> seen;
  for (int i = 0; i < 100; ++i) {
    const NamedFrame frame = User(1, "leaf");  // a location of its own each time
    seen.emplace_back(frame.location);
    builder.Add(MadeWindow().AddStack({frame}).AddSample(kProcess, "t", 1).named());
  }
  const auto kept = std::ranges::count_if(seen, [](const auto& l) { return !l.expired(); });
  EXPECT_EQ(kept, 1);
}

TEST(ProfileBuilder, CanBeMovedBetweenWindows) {
  ProfileBuilder first = MakeBuilder();
  first.Add(MadeWindow().AddStack({User(1, "leaf")}).AddSample(kProcess, "t", 1).named());
  ProfileBuilder second = std::move(first);
  second.Add(MadeWindow().AddStack({User(1, "leaf")}).AddSample(kProcess, "t", 1).named());
  const Profile profile = std::move(second).Finish();
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].count, 2);
}

}  // namespace
}  // namespace pyrometer
