// SPDX-License-Identifier: Apache-2.0
#include "metadata/first_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace pyrometer {
namespace {

// One that fails, or has a container of its name.
class Source final : public ContainerSource {
 public:
  Source(std::string name, std::optional<ErrorCode> failure)
      : name_(std::move(name)), failure_(failure) {}
  Result<std::vector<ContainerMetadata>> List() override {
    if (failure_) return Error(*failure_, name_ + " fails");
    return std::vector<ContainerMetadata>{{.id = name_}};
  }
  void Cancel() override {}

 private:
  const std::string name_;
  const std::optional<ErrorCode> failure_;
};

// The id of the container listed, or the error, of three sources.
std::string Listed(std::optional<ErrorCode> one, std::optional<ErrorCode> two,
                   std::optional<ErrorCode> three) {
  std::vector<std::unique_ptr<ContainerSource>> sources;
  sources.push_back(std::make_unique<Source>("one", one));
  sources.push_back(std::make_unique<Source>("two", two));
  sources.push_back(std::make_unique<Source>("three", three));
  const auto list = FirstSource(std::move(sources)).List();
  return list ? list->at(0).id : list.error().message();
}

TEST(FirstSource, IsTheFirstThatIsThereAndMayBeAsked) {
  using enum ErrorCode;
  EXPECT_EQ(Listed({}, {}, {}), "one");
  EXPECT_EQ(Listed(kNotFound, {}, {}), "two");
  EXPECT_EQ(Listed(kPermission, {}, {}), "two");
  EXPECT_EQ(Listed(kUnsupported, kPermission, {}), "three");
  EXPECT_EQ(Listed(kNotFound, kIo, {}), "two fails") << "it is there, and may work again";
}

// Has nothing.
class Empty final : public ContainerSource {
 public:
  Result<std::vector<ContainerMetadata>> List() override {
    return std::vector<ContainerMetadata>();
  }
  void Cancel() override {}
};

TEST(FirstSource, GoesOnWhereThereAreNoContainers) {
  const auto listed = [](std::optional<ErrorCode> second) {
    std::vector<std::unique_ptr<ContainerSource>> sources;
    sources.push_back(std::make_unique<Empty>());
    sources.push_back(std::make_unique<Source>("docker", second));
    return FirstSource(std::move(sources)).List();
  };
  EXPECT_EQ(listed({})->at(0).id, "docker") << "whose containerd speaks CRI, too";
  EXPECT_TRUE(listed(ErrorCode::kNotFound)->empty());
  EXPECT_TRUE(listed(ErrorCode::kPermission)->empty());
}

// Has a container if it is to answer, and counts what it is told.
class Flickering final : public ContainerSource {
 public:
  Flickering(const bool& answers, int& rests) : answers_(answers), rests_(rests) {}
  Result<std::vector<ContainerMetadata>> List() override {
    if (!answers_) return Error(ErrorCode::kNotFound, "away");
    return std::vector<ContainerMetadata>{{.id = "a"}};
  }
  void Cancel() override {}
  void Rest() override { ++rests_; }

 private:
  const bool& answers_;
  int& rests_;
};

TEST(FirstSource, TellsThoseBehindTheOneThatAnswers) {
  bool first_answers = false;
  const bool yes = true;
  int rests[3] = {};
  std::vector<std::unique_ptr<ContainerSource>> sources;
  sources.push_back(std::make_unique<Flickering>(first_answers, rests[0]));
  sources.push_back(std::make_unique<Flickering>(yes, rests[1]));
  sources.push_back(std::make_unique<Flickering>(yes, rests[2]));
  FirstSource source(std::move(sources));
  EXPECT_TRUE(source.List());
  EXPECT_THAT(rests, testing::ElementsAre(0, 0, 1));
  first_answers = true;
  EXPECT_TRUE(source.List());
  EXPECT_THAT(rests, testing::ElementsAre(0, 1, 2));
}

TEST(FirstSource, TellsOfTheFirstThatIsThereIfNoneMayBeAsked) {
  using enum ErrorCode;
  EXPECT_EQ(Listed(kNotFound, kPermission, kNotFound), "two fails");
  EXPECT_EQ(Listed(kPermission, kPermission, kPermission), "one fails");
  EXPECT_EQ(Listed(kPermission, kNotFound, kUnsupported), "one fails");
  EXPECT_EQ(Listed(kNotFound, kUnsupported, kNotFound), "one fails; two fails; three fails")
      << "where all were looked for";
}

}  // namespace
}  // namespace pyrometer
