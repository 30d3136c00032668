// SPDX-License-Identifier: Apache-2.0
#include "metadata/joined_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace pyrometer {
namespace {

using testing::ElementsAre;

// What a source says now, and how often it was asked.
struct State {
  std::vector<std::string> containers{};
  std::optional<ErrorCode> failure{};
  int asked = 0;
};

class Source final : public ContainerSource {
 public:
  Source(std::string name, State& state) : name_(std::move(name)), state_(state) {}
  Result<std::vector<ContainerMetadata>> List() override {
    ++state_.asked;
    if (state_.failure) return Error(*state_.failure, name_ + " fails");
    std::vector<ContainerMetadata> list;
    for (const std::string& id : state_.containers) {
      list.push_back({.id = id, .name = name_, .pod = std::make_shared<const PodMetadata>()});
    }
    return list;
  }
  void Cancel() override {}

 private:
  const std::string name_;
  State& state_;
};

JoinedSource Joined(State& cri, State& docker,
                    std::chrono::nanoseconds pause = std::chrono::minutes(1)) {
  std::vector<std::unique_ptr<ContainerSource>> sources;
  sources.push_back(std::make_unique<Source>("cri", cri));
  sources.push_back(std::make_unique<Source>("docker", docker));
  return JoinedSource(std::move(sources), pause);
}

// "a of cri", or the error.
std::vector<std::string> Told(JoinedSource& source) {
  const auto list = source.List();
  if (!list) return {list.error().message()};
  std::vector<std::string> told;
  for (const ContainerMetadata& container : *list) {
    told.push_back(container.id + " of " + container.name);
  }
  return told;
}

TEST(JoinedSource, HasTheContainersOfAll) {
  State cri{.containers = {"a", "b"}};
  State docker{.containers = {"b", "c"}};
  JoinedSource source = Joined(cri, docker);
  EXPECT_THAT(Told(source), ElementsAre("a of cri", "b of cri", "c of docker"));
  cri.containers.clear();
  EXPECT_THAT(Told(source), ElementsAre("b of docker", "c of docker"));
}

TEST(JoinedSource, LeavesOutThoseThatAreNotThereOrMayNotBeAsked) {
  for (const ErrorCode code :
       {ErrorCode::kNotFound, ErrorCode::kPermission, ErrorCode::kUnsupported}) {
    State one{.containers = {"a"}};
    State other{.failure = code};
    JoinedSource first = Joined(one, other);
    EXPECT_THAT(Told(first), ElementsAre("a of cri"));
    EXPECT_THAT(Told(first), ElementsAre("a of cri"));
    EXPECT_EQ(other.asked, 2);
    JoinedSource second = Joined(other, one);
    EXPECT_THAT(Told(second), ElementsAre("a of docker"));
  }
}

TEST(JoinedSource, SaysWhyNobodyAnswers) {
  State cri{.failure = ErrorCode::kNotFound};
  State docker{.failure = ErrorCode::kNotFound};
  JoinedSource source = Joined(cri, docker);
  EXPECT_THAT(Told(source), ElementsAre("cri fails; docker fails"));
  docker.failure = ErrorCode::kPermission;
  EXPECT_THAT(Told(source), ElementsAre("docker fails"));
  docker.failure.reset();
  EXPECT_THAT(Told(source), ElementsAre()) << "it is there, and has none";
}

TEST(JoinedSource, WaitsForOneThatFailsUnlessAnotherHasContainers) {
  State cri{.failure = ErrorCode::kIo};
  State docker{.containers = {"a"}};
  JoinedSource source = Joined(cri, docker);
  EXPECT_THAT(Told(source), ElementsAre("cri fails"));
  cri = {.containers = {"b"}};
  docker.failure = ErrorCode::kIo;
  docker.asked = 0;
  EXPECT_THAT(Told(source), ElementsAre("b of cri"));
  docker.failure.reset();
  EXPECT_THAT(Told(source), ElementsAre("b of cri")) << "what hangs is left alone for a while";
  EXPECT_EQ(docker.asked, 1);
  cri.containers.clear();
  EXPECT_THAT(Told(source), ElementsAre("a of docker")) << "it holds nobody up then";
}

TEST(JoinedSource, AsksOneThatFailedAgain) {
  State cri{.containers = {"a"}};
  State docker{.failure = ErrorCode::kIo};
  JoinedSource source = Joined(cri, docker, std::chrono::nanoseconds(0));
  EXPECT_THAT(Told(source), ElementsAre("a of cri"));
  docker = {.containers = {"b"}};
  EXPECT_THAT(Told(source), ElementsAre("a of cri", "b of docker"));
}

}  // namespace
}  // namespace pyrometer
