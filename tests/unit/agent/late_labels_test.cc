// SPDX-License-Identifier: Apache-2.0
#include "agent/late_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/process_labels.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Has one container, "c1", called app in pod web of shop.
class OneContainer final : public ContainerSource {
 public:
  Result<std::vector<ContainerMetadata>> List() override {
    return std::vector<ContainerMetadata>{{.id = "c1",
                                           .name = "app",
                                           .pod = std::make_shared<const PodMetadata>(
                                               PodMetadata{.name = "web", .name_space = "shop"})}};
  }
  void Cancel() override {}
};

// Never answers.
class NoAnswer final : public ContainerSource {
 public:
  Result<std::vector<ContainerMetadata>> List() override {
    while (!cancelled_) std::this_thread::yield();
    return Error(ErrorCode::kIo, "cancelled");
  }
  void Cancel() override { cancelled_ = true; }

 private:
  std::atomic<bool> cancelled_ = false;
};

LabelSet Make(Labels labels) {
  return std::make_shared<const Labels>(std::move(labels));
}

void Await(ContainerDirectory& directory, const std::string& id,
           ContainerDirectory::Answer::State state) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (directory.Find(id).state != state && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

const ContainerDirectory::Options kQuick{.pause = std::chrono::milliseconds(1)};

TEST(WithContainerLabels, LeavesWhatRulesHaveAdded) {
  ContainerDirectory directory(kQuick, std::make_unique<OneContainer>());
  Await(directory, "c1", ContainerDirectory::Answer::State::kKnown);
  const std::vector<LabelSet> sets = {Make({{"container_id", "c1"},
                                            {"pod", "not this one"},
                                            {"service_name", "nginx"},
                                            {"team", "shop"}})};
  EXPECT_THAT(**WithContainerLabels(directory, sets)[0],
              ElementsAre(Pair("container", "app"), Pair("namespace", "shop"), Pair("pod", "web"),
                          Pair("service_name", "app"), Pair("team", "shop")));
}

TEST(WithContainerLabels, NamesContainersThatAreKnown) {
  ContainerDirectory directory(kQuick, std::make_unique<OneContainer>());
  Await(directory, "c1", ContainerDirectory::Answer::State::kKnown);
  Await(directory, "c2", ContainerDirectory::Answer::State::kUnknown);
  const std::vector<LabelSet> sets = {
      Make({{"container_id", "c1"}, {"service_name", "nginx"}}),
      Make({{"container_id", "c2"}, {"service_name", "nginx"}}),
      Make({{"service_name", "cron"}, {"systemd_unit", "cron.service"}})};
  const auto completed = WithContainerLabels(directory, sets);
  ASSERT_EQ(completed.size(), 3);
  EXPECT_THAT(**completed[0], ElementsAre(Pair("container", "app"), Pair("namespace", "shop"),
                                          Pair("pod", "web"), Pair("service_name", "app")));
  EXPECT_EQ(*completed[1], sets[1]);
  EXPECT_EQ(*completed[2], sets[2]);
}

TEST(WithContainerLabels, AnswersNothingForThoseThatAreAwaited) {
  ContainerDirectory directory(kQuick, std::make_unique<NoAnswer>());
  const std::vector<LabelSet> sets = {Make({{"container_id", "c1"}}),
                                      Make({{"service_name", "cron"}})};
  const auto completed = WithContainerLabels(directory, sets);
  EXPECT_FALSE(completed[0].has_value());
  EXPECT_EQ(*completed[1], sets[1]);
}

TEST(AddContainerLabels, LeavesWhatIsAwaitedAsItIs) {
  ContainerDirectory directory(kQuick, std::make_unique<NoAnswer>());
  Profile profile;
  profile.samples.resize(2);
  profile.samples[0].labels = Make({{"container_id", "c1"}});
  AddContainerLabels(directory, profile);
  EXPECT_THAT(*profile.samples[0].labels, ElementsAre(Pair("container_id", "c1")));
  EXPECT_EQ(profile.samples[1].labels, nullptr);
}

TEST(AddContainerLabels, NamesEachSample) {
  ContainerDirectory directory(kQuick, std::make_unique<OneContainer>());
  Await(directory, "c1", ContainerDirectory::Answer::State::kKnown);
  Profile profile;
  profile.samples.resize(2);
  for (ProfileSample& sample : profile.samples) sample.labels = Make({{"container_id", "c1"}});
  AddContainerLabels(directory, profile);
  for (const ProfileSample& sample : profile.samples) {
    EXPECT_EQ(sample.labels->at(2), std::pair(std::string("pod"), std::string("web")));
  }
}

}  // namespace
}  // namespace pyrometer
