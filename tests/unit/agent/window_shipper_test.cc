// SPDX-License-Identifier: Apache-2.0
#include "agent/window_shipper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/agent/named_window.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class WindowShipperTest : public testing::Test {
 protected:
  void Consume(NamedWindow window, bool ends_period, Accounting missed = {}) {
    shipper_.Consume({.window = std::make_shared<const NamedWindow>(std::move(window)),
                      .ends_period = ends_period,
                      .missed = missed});
  }

  // The service and samples of each profile of one period.
  static std::vector<std::pair<std::string, uint64_t>> Services(const ShippedWindow& window) {
    std::vector<std::pair<std::string, uint64_t>> services;
    for (const Profile& profile : *window) {
      uint64_t samples = 0;
      for (const ProfileSample& sample : profile.samples) samples += sample.count;
      for (const auto& [name, value] : profile.labels) {
        if (name == "service_name") services.emplace_back(value, samples);
      }
    }
    return services;
  }

  const Clock clock_;
  std::vector<ShippedWindow> shipped_;
  WindowShipper shipper_{{{"cluster", "blue"}},
                         [this](const ShippedWindow& window) { shipped_.push_back(window); },
                         clock_};
};

TEST_F(WindowShipperTest, MakesAProfileOfEachLabelSetOfAPeriod) {
  NamedWindow first = EmptyWindow(1);
  AddSamples(first, "nginx", 3);
  AddSamples(first, "redis", 5);
  NamedWindow second = EmptyWindow(2);
  AddSamples(second, "nginx", 4);
  Consume(std::move(first), false);
  EXPECT_THAT(shipped_, IsEmpty());
  Consume(std::move(second), true);
  ASSERT_EQ(shipped_.size(), 1);
  EXPECT_THAT(Services(shipped_[0]), UnorderedElementsAre(Pair("nginx", 7), Pair("redis", 5)));
  EXPECT_EQ(shipper_.counters().samples, 12);
  EXPECT_EQ(shipper_.counters().profiles, 2);
}

TEST_F(WindowShipperTest, BeginsAnotherProfileWhenTheFrequencyChanges) {
  NamedWindow first = EmptyWindow(1);
  AddSamples(first, "nginx", 3);
  NamedWindow second = EmptyWindow(2);
  second.window.frequency = Hertz{50};
  AddSamples(second, "nginx", 4);
  Consume(std::move(first), false);
  Consume(std::move(second), true);
  ASSERT_EQ(shipped_.size(), 2);
  EXPECT_EQ(shipped_[0]->front().frequency, Hertz{100});
  EXPECT_EQ(shipped_[1]->front().frequency, Hertz{50});
}

TEST_F(WindowShipperTest, PutsTheAgentsLabelsOnEveryProfileFromTheNextPeriodOn) {
  const auto labels_after = [this](int second) {
    NamedWindow window = EmptyWindow(second);
    AddSamples(window, "nginx", 1);
    Consume(std::move(window), true);
    return shipped_.back()->front().labels;
  };
  EXPECT_THAT(labels_after(1), ElementsAre(Pair("cluster", "blue"), Pair("service_name", "nginx")));
  shipper_.SetLabels({{"cluster", "green"}});
  EXPECT_THAT(labels_after(2),
              ElementsAre(Pair("cluster", "green"), Pair("service_name", "nginx")));
}

TEST_F(WindowShipperTest, ShipsWhatThereIsOfAPeriodWhoseEndNeverCame) {
  NamedWindow window = EmptyWindow(1);
  AddSamples(window, "nginx", 3);
  Consume(std::move(window), false);
  shipper_.EndPeriod();
  ASSERT_EQ(shipped_.size(), 1);
  EXPECT_THAT(Services(shipped_[0]), ElementsAre(Pair("nginx", 3)));
  shipper_.EndPeriod();
  EXPECT_EQ(shipped_.size(), 1);
}

TEST_F(WindowShipperTest, ShipsSamplesOnceTheirLabelsAreKnown) {
  bool known = false;
  const auto relabel = [&known](std::span<const LabelSet> sets) {
    std::vector<std::optional<LabelSet>> answers;
    for (const LabelSet& labels : sets) {
      const bool waits = !known && labels->front().second == "redis";
      answers.push_back(waits ? std::nullopt : std::optional(labels));
    }
    return answers;
  };
  WindowShipper shipper({}, [this](const ShippedWindow& window) { shipped_.push_back(window); },
                        clock_, {.relabel = relabel, .most_periods = 9});
  const auto consume = [&shipper](int second) {
    NamedWindow window = EmptyWindow(second);
    AddSamples(window, "nginx", 1);
    AddSamples(window, "redis", 2);
    shipper.Consume({.window = std::make_shared<const NamedWindow>(std::move(window)),
                     .ends_period = true,
                     .missed = {}});
  };
  consume(1);
  EXPECT_THAT(Services(shipped_.back()), ElementsAre(Pair("nginx", 1)));
  EXPECT_EQ(shipper.counters().samples, 1);
  EXPECT_EQ(shipper.counters().waiting.waiting, 2);
  known = true;
  consume(2);
  EXPECT_THAT(Services(shipped_.back()),
              ElementsAre(Pair("nginx", 1), Pair("redis", 2), Pair("redis", 2)));
  EXPECT_NE(shipped_.back()->at(1).begin, shipped_.back()->at(2).begin);
  EXPECT_EQ(shipper.counters().samples, 6);
  EXPECT_EQ(shipper.counters().waiting.waiting, 0);
  known = false;
  consume(3);
  shipper.EndPeriod();
  EXPECT_THAT(Services(shipped_.back()), ElementsAre(Pair("redis", 2)));
  EXPECT_EQ(shipper.counters().samples, 9);
}

TEST_F(WindowShipperTest, CountsTheTicksOfWindowsThatItMissed) {
  Accounting missed;
  missed.lost[Accounting::kWindowDropped] = 9;
  NamedWindow window = EmptyWindow(1);
  AddSamples(window, "nginx", 1);
  Consume(std::move(window), true, missed);
  EXPECT_EQ(shipper_.counters().missed, 9);
  EXPECT_EQ(shipped_[0]->front().accounting.TotalLost(), 9);
}

}  // namespace
}  // namespace pyrometer
