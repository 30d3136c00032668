// SPDX-License-Identifier: Apache-2.0
#include "record/container_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string IdOf(char digit) {
  return std::string(64, digit);
}

// What the runtime says next; the last for ever.
struct Script {
  absl::Mutex mutex;
  std::vector<Result<std::string>> answers;  // the first digits of the ids of containers
};

class ScriptedSource final : public ContainerSource {
 public:
  explicit ScriptedSource(Script& script) : script_(script) {}
  Result<std::vector<ContainerMetadata>> List() override {
    const absl::MutexLock lock(&script_.mutex);
    const Result<std::string> digits = script_.answers.front();
    if (script_.answers.size() > 1) script_.answers.erase(script_.answers.begin());
    if (!digits) return digits.error();
    std::vector<ContainerMetadata> containers;
    for (const char digit : *digits) {
      containers.push_back(
          {.id = IdOf(digit), .name = "app", .pod = std::make_shared<const PodMetadata>()});
    }
    return containers;
  }
  void Cancel() override {}

 private:
  Script& script_;
};

class ContainerFollowerTest : public testing::Test {
 protected:
  ContainerFollowerTest() {
    tree_.File("proc/self/mountinfo",
               "1 0 0:1 / " + tree_.Path("cgroup") + " rw - cgroup2 cgroup2 rw\n");
    for (const char digit : {'a', 'b', 'c'}) tree_.Directory("cgroup/" + IdOf(digit));
  }

  ContainerFollower Following(std::vector<Result<std::string>> answers) {
    script_.answers = std::move(answers);
    return {tree_.AsProcfs(),
            {.containers = {"app"}},
            std::make_unique<ScriptedSource>(script_),
            std::chrono::milliseconds(5)};
  }
  // Until `count` cgroups were wanted, or for 20 s.
  bool AwaitWanted(size_t count) {
    const absl::MutexLock lock(&script_.mutex);
    const auto is_so = [&] { return wanted_.size() >= count; };
    return script_.mutex.AwaitWithTimeout(absl::Condition(&is_so), absl::Seconds(20));
  }
  bool AwaitForgotten(const std::string& digits) {
    const absl::MutexLock lock(&script_.mutex);
    const auto is_so = [&] { return forgotten_ == digits; };
    return script_.mutex.AwaitWithTimeout(absl::Condition(&is_so), absl::Seconds(20));
  }
  ContainerFollower::Filter Filter() {
    return {.want = [this](const CgroupTarget& cgroup) -> Result<void> {
              const absl::MutexLock lock(&script_.mutex);
              wanted_.push_back(cgroup.path.back());
              if (wanted_.back() == refused_) return Fail(ErrorCode::kExhausted, "it is full");
              return {};
            },
            .forget =
                [this](const CgroupTarget& cgroup) {
                  const absl::MutexLock lock(&script_.mutex);
                  forgotten_.push_back(cgroup.path.back());
                }};
  }

  TemporaryTree tree_;
  Script script_;
  std::string wanted_;  // digits
  std::string forgotten_;
  char refused_ = 'c';
};

TEST_F(ContainerFollowerTest, WantsWhatBeginsLaterOnce) {
  ContainerFollower follower = Following({"a", "a", "ab"});
  EXPECT_THAT(*follower.Find(), SizeIs(1));
  follower.Start(Filter());
  ASSERT_TRUE(AwaitWanted(1));
  follower.End();
  EXPECT_EQ(follower.TakeError(), std::nullopt);
  EXPECT_EQ(wanted_, "b");
}

TEST_F(ContainerFollowerTest, ForgetsWhatIsGone) {
  ContainerFollower follower = Following({"ab", "b"});
  EXPECT_THAT(*follower.Find(), SizeIs(2));
  std::filesystem::remove(tree_.Path("cgroup/" + IdOf('b')));
  follower.Start(Filter());
  ASSERT_TRUE(AwaitForgotten("b"));
  follower.End();
  EXPECT_EQ(forgotten_, "b") << "the other runs on, though the runtime lists it no more";
}

TEST_F(ContainerFollowerTest, TellsAtOnceThatTheFilterIsFullAndTriesAgain) {
  refused_ = 'b';
  ContainerFollower follower = Following({"a", "abc"});
  ASSERT_TRUE(follower.Find());
  follower.Start(Filter());
  ASSERT_TRUE(AwaitWanted(2));
  const std::optional<Error> error = follower.TakeError();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message(), "it is full");
  follower.End();
  EXPECT_EQ(wanted_.find('c'), std::string::npos) << "no other would fit either";
  EXPECT_FALSE(follower.TakeError()) << "it was told";
}

TEST_F(ContainerFollowerTest, TellsWhatItCouldNotDo) {
  ContainerFollower follower = Following({"a", Error(ErrorCode::kIo, "the socket broke"), "ab"});
  ASSERT_TRUE(follower.Find());
  follower.Start(Filter());
  ASSERT_TRUE(AwaitWanted(1));
  follower.End();
  const std::optional<Error> error = follower.TakeError();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message(), HasSubstr("the socket broke"));
}

TEST_F(ContainerFollowerTest, NeedsOneAtFirst) {
  EXPECT_EQ(Following({""}).Find().error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Following({"f"}).Find().error().code(), ErrorCode::kNotFound) << "it does not run";
  const Result<std::vector<CgroupTarget>> refused =
      Following({Error(ErrorCode::kPermission, "no")}).Find();
  EXPECT_EQ(refused.error().code(), ErrorCode::kPermission);
  EXPECT_EQ(refused.error().message(), "asking for containers by name: no");
}

}  // namespace
}  // namespace pyrometer
