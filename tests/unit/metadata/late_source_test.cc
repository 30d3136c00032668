// SPDX-License-Identifier: Apache-2.0
#include "metadata/late_source.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

// Tells of a change as soon as somebody wants to know.
class Changing final : public ContainerSource {
 public:
  Result<std::vector<ContainerMetadata>> List() override {
    return std::vector<ContainerMetadata>{{.id = "a"}};
  }
  void Cancel() override {}
  void TellChanges(const std::function<void()>& changed) override { changed(); }
};

TEST(LateSource, IsMadeWhenItIsAskedFirst) {
  int made = 0;
  int changes = 0;
  LateSource source([&] {
    ++made;
    return std::make_unique<Changing>();
  });
  source.TellChanges([&] { ++changes; });
  EXPECT_EQ(made, 0);
  EXPECT_EQ(source.List()->at(0).id, "a");
  EXPECT_TRUE(source.List());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(changes, 1);
}

TEST(LateSource, IsNotMadeAfterCancel) {
  LateSource source([] { return std::make_unique<Changing>(); });
  source.Cancel();
  EXPECT_FALSE(source.List());
}

// Counts how many there are.
class Counted final : public ContainerSource {
 public:
  explicit Counted(int& alive) : alive_(alive) { ++alive_; }
  ~Counted() override { --alive_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  Result<std::vector<ContainerMetadata>> List() override {
    return std::vector<ContainerMetadata>();
  }
  void Cancel() override {}

 private:
  int& alive_;
};

TEST(LateSource, EndsItsSourceWhenOthersAnswerForAWhile) {
  int alive = 0;
  LateSource source([&] { return std::make_unique<Counted>(alive); }, std::chrono::milliseconds(5));
  source.Rest();
  EXPECT_TRUE(source.List());
  EXPECT_EQ(alive, 1);
  const MonotonicTime begin = MonotonicNow();
  while (alive > 0 && Between(begin, MonotonicNow()) < std::chrono::seconds(10)) source.Rest();
  EXPECT_EQ(alive, 0);
  EXPECT_GE(Between(begin, MonotonicNow()), std::chrono::milliseconds(5));
  EXPECT_TRUE(source.List());
  EXPECT_EQ(alive, 1) << "made anew, for it is asked again";
}

TEST(LateSource, KeepsItsSourceWhileItIsAskedAtTimes) {
  int alive = 0;
  LateSource source([&] { return std::make_unique<Counted>(alive); });
  EXPECT_TRUE(source.List());
  source.Rest();
  EXPECT_TRUE(source.List());
  source.Rest();
  EXPECT_EQ(alive, 1);
}

}  // namespace
}  // namespace pyrometer
