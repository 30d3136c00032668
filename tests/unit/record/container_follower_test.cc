// SPDX-License-Identifier: Apache-2.0
#include "record/container_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/synchronization/mutex.h"
#include "tests/shared/eventually.h"
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
    return {tree_.AsProcfs(), {.containers = {"app"}}, std::make_unique<ScriptedSource>(script_)};
  }
  // Until `count` cgroups were wanted.
  bool AwaitWanted(size_t count) {
    return Eventually([&] {
      const absl::MutexLock lock(&script_.mutex);
      return wanted_.size() >= count;
    });
  }
  ContainerFollower::Want Want() {
    return [this](const CgroupTarget& cgroup) -> Result<void> {
      const absl::MutexLock lock(&script_.mutex);
      wanted_.push_back(cgroup.path.back());
      if (wanted_.back() == 'c') return Fail(ErrorCode::kExhausted, "the filter is full");
      return {};
    };
  }

  TemporaryTree tree_;
  Script script_;
  std::string wanted_;  // digits
};

TEST_F(ContainerFollowerTest, WantsWhatBeginsLaterOnce) {
  ContainerFollower follower = Following({"a", "a", "ab"});
  EXPECT_THAT(*follower.Find(), SizeIs(1));
  follower.Start(Want());
  ASSERT_TRUE(AwaitWanted(1));
  EXPECT_EQ(follower.End(), std::nullopt);
  EXPECT_EQ(wanted_, "b");
}

TEST_F(ContainerFollowerTest, TellsWhatItCouldNotDo) {
  ContainerFollower follower = Following({"a", Error(ErrorCode::kIo, "the socket broke"), "abc"});
  ASSERT_TRUE(follower.Find());
  follower.Start(Want());
  ASSERT_TRUE(AwaitWanted(2));
  const std::optional<Error> error = follower.End();
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
