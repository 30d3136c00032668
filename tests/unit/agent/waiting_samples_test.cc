// SPDX-License-Identifier: Apache-2.0
#include "agent/waiting_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Containers are known by the names in `pods`; others are awaited. One that is called "" is
// dropped.
class WaitingSamplesTest : public testing::Test {
 protected:
  static Profile Of(const std::vector<std::pair<std::string, uint64_t>>& containers) {
    Profile profile;
    for (const auto& [id, count] : containers) {
      ProfileSample sample;
      sample.labels = std::make_shared<const Labels>(Labels{{"container_id", id}});
      sample.count = count;
      profile.samples.push_back(std::move(sample));
    }
    return profile;
  }

  // {"the only label's value": ticks} of each profile.
  static std::vector<std::pair<std::string, uint64_t>> Ticks(const std::vector<Profile>& profiles) {
    std::vector<std::pair<std::string, uint64_t>> ticks;
    for (const Profile& profile : profiles) {
      uint64_t sum = 0;
      for (const ProfileSample& sample : profile.samples) sum += sample.count;
      ticks.emplace_back(profile.labels.at(0).second, sum);
    }
    return ticks;
  }

  std::vector<std::optional<LabelSet>> Answer(std::span<const LabelSet> sets) const {
    std::vector<std::optional<LabelSet>> answers;
    for (const LabelSet& labels : sets) {
      const auto pod = pods_.find(labels->front().second);
      answers.push_back(pod == pods_.end() ? std::nullopt : std::optional(InPod(pod->second)));
    }
    return answers;
  }

  static LabelSet InPod(const std::string& name) {
    return name.empty() ? nullptr : std::make_shared<const Labels>(Labels{{"pod", name}});
  }

  std::map<std::string, std::string> pods_;
  WaitingSamples samples_{
      {.relabel = [this](std::span<const LabelSet> sets) { return Answer(sets); },
       .most_periods = 3}};
};

TEST_F(WaitingSamplesTest, LetsPassWhatIsKnownAndKeepsTheRest) {
  pods_ = {{"c1", "web"}};
  EXPECT_THAT(Ticks(samples_.Split(Of({{"c1", 1}, {"c2", 2}, {"c1", 4}}))),
              ElementsAre(Pair("web", 5)));
  EXPECT_EQ(samples_.counters().waiting, 2);
  EXPECT_EQ(samples_.counters().late, 0);
}

TEST_F(WaitingSamplesTest, HandsOverWhatHasBecomeKnown) {
  EXPECT_THAT(samples_.Split(Of({{"c1", 1}, {"c2", 2}})), IsEmpty());
  EXPECT_THAT(samples_.TakeReady(), IsEmpty());
  pods_ = {{"c2", "web"}};
  EXPECT_THAT(Ticks(samples_.TakeReady()), ElementsAre(Pair("web", 2)));
  EXPECT_EQ(samples_.counters().waiting, 1);
  EXPECT_EQ(samples_.counters().late, 2);
  EXPECT_EQ(samples_.counters().in_vain, 0);
}

TEST_F(WaitingSamplesTest, WaitsForSoManyPeriodsAndNoMore) {
  EXPECT_THAT(samples_.Split(Of({{"c1", 1}})), IsEmpty());
  EXPECT_THAT(samples_.TakeReady(), IsEmpty());
  EXPECT_THAT(samples_.Split(Of({{"c1", 2}})), IsEmpty());
  EXPECT_THAT(samples_.TakeReady(), IsEmpty());
  EXPECT_THAT(Ticks(samples_.TakeReady()), ElementsAre(Pair("c1", 1)));
  EXPECT_THAT(Ticks(samples_.TakeReady()), ElementsAre(Pair("c1", 2)));
  EXPECT_THAT(samples_.TakeReady(), IsEmpty());
  EXPECT_EQ(samples_.counters().waiting, 0);
  EXPECT_EQ(samples_.counters().late, 3);
  EXPECT_EQ(samples_.counters().in_vain, 3);
}

TEST_F(WaitingSamplesTest, CountsWhatIsDropped) {
  pods_ = {{"c1", ""}};
  EXPECT_THAT(samples_.Split(Of({{"c1", 1}, {"c2", 2}})), IsEmpty());
  EXPECT_EQ(samples_.counters().dropped, 1);
  pods_ = {{"c2", ""}};
  EXPECT_THAT(samples_.TakeReady(), IsEmpty());
  EXPECT_EQ(samples_.counters().dropped, 3);
  EXPECT_EQ(samples_.counters().waiting, 0);
  EXPECT_EQ(samples_.counters().late, 2);
}

TEST_F(WaitingSamplesTest, AsksWhatToMakeOfWhatItGivesUp) {
  const auto nothing = [](std::span<const LabelSet> sets) {
    return std::vector<std::optional<LabelSet>>(sets.size());
  };
  const auto unknown = [](std::span<const LabelSet> sets) {
    return std::vector<std::optional<LabelSet>>(sets.size(), InPod("unknown"));
  };
  WaitingSamples samples{{.relabel = nothing, .give_up = unknown, .most_periods = 1}};
  EXPECT_THAT(samples.Split(Of({{"c1", 1}})), IsEmpty());
  EXPECT_THAT(Ticks(samples.TakeReady()), ElementsAre(Pair("unknown", 1)));
  EXPECT_THAT(samples.Split(Of({{"c1", 2}})), IsEmpty());
  EXPECT_THAT(Ticks(samples.TakeAll()), ElementsAre(Pair("unknown", 2)));
}

TEST_F(WaitingSamplesTest, HandsOverAllAtTheEnd) {
  EXPECT_THAT(samples_.Split(Of({{"c1", 1}})), IsEmpty());
  EXPECT_THAT(samples_.TakeReady(), IsEmpty());
  EXPECT_THAT(samples_.Split(Of({{"c1", 2}, {"c2", 4}})), IsEmpty());
  EXPECT_THAT(Ticks(samples_.TakeAll()), ElementsAre(Pair("c1", 1), Pair("c1", 2), Pair("c2", 4)));
  EXPECT_EQ(samples_.counters().waiting, 0);
  EXPECT_EQ(samples_.counters().in_vain, 7);
}

TEST_F(WaitingSamplesTest, KeepsNothingIfAllLabelsAreKnown) {
  WaitingSamples samples{{}};
  EXPECT_THAT(Ticks(samples.Split(Of({{"c1", 1}}))), ElementsAre(Pair("c1", 1)));
  EXPECT_THAT(samples.TakeReady(), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
