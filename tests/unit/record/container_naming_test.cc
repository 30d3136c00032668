// SPDX-License-Identifier: Apache-2.0
#include "record/container_naming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "tests/shared/eventually.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::string IdOf(char digit) {
  return std::string(64, digit);
}

// A runtime that knows the container "aaaa..." of a pod.
class Runtime final : public ContainerSource {
 public:
  explicit Runtime(std::atomic<int>& asked) : asked_(asked) {}
  Result<std::vector<ContainerMetadata>> List() override {
    ++asked_;
    auto pod = std::make_shared<const PodMetadata>(
        PodMetadata{.name = "web-0", .name_space = "shop", .labels = {{"app", "x"}}});
    return std::vector<ContainerMetadata>{{.id = IdOf('a'), .name = "app", .pod = std::move(pod)}};
  }
  void Cancel() override {}

 private:
  std::atomic<int>& asked_;
};

class ContainerNamingTest : public testing::Test {
 protected:
  // What is captured of a process in this cgroup; nothing readable if "".
  LabelSet Seen(const std::string& cgroup, LabelSet inherited = nullptr) {
    const uint32_t pid = next_pid_++;
    SeenProcess process{.key = {Pid(pid), {}}, .comm = "app", .inherited = std::move(inherited)};
    if (cgroup.empty()) return naming_.OnProcess(process);
    tree_.File("proc/" + std::to_string(pid) + "/cgroup", "0::" + cgroup + "\n");
    const Result<ProcessDirectory> directory = ProcessDirectory::Open(tree_.AsProcfs(), Pid(pid));
    process.directory = &*directory;
    return naming_.OnProcess(process);
  }
  // The labels of a sample with these, in the end.
  LabelSet Named(const LabelSet& labels) {
    Profile profile;
    profile.samples.emplace_back().labels = labels;
    naming_.Name(profile, kTestPatience);
    return profile.samples.front().labels;
  }

  TemporaryTree tree_;
  std::atomic<int> asked_ = 0;
  const Clock clock_;
  ContainerNaming naming_{[this] { return std::make_unique<Runtime>(asked_); }, clock_};
  uint32_t next_pid_ = 100;
};

TEST_F(ContainerNamingTest, NamesWhatTheRuntimeKnows) {
  const LabelSet captured = Seen("/kubepods/podx/" + IdOf('a'));
  EXPECT_THAT(*captured, ElementsAre(Pair("container_id", IdOf('a'))));
  EXPECT_THAT(*Named(captured), ElementsAre(Pair("container", "app"), Pair("namespace", "shop"),
                                            Pair("pod", "web-0"), Pair("service_name", "app")));
}

TEST_F(ContainerNamingTest, LeavesTheIdOfOneThatNobodyKnows) {
  const LabelSet captured = Seen("/docker/" + IdOf('b'));
  EXPECT_THAT(*Named(captured), ElementsAre(Pair("container_id", IdOf('b'))));
}

TEST_F(ContainerNamingTest, AsksNobodyWithoutContainers) {
  EXPECT_EQ(Seen("/system.slice/ssh.service"), nullptr);
  EXPECT_EQ(Named(nullptr), nullptr);
  EXPECT_EQ(asked_, 0);
}

TEST_F(ContainerNamingTest, TakesTheParentsForOneThatIsGone) {
  const LabelSet parent = Seen("/docker/" + IdOf('b'));
  EXPECT_EQ(Seen("", parent), parent);
  EXPECT_EQ(Seen("/docker/" + IdOf('b')), parent) << "of a container there is one";
  EXPECT_EQ(Seen("/user.slice", parent), nullptr) << "it has left the container";
}

}  // namespace
}  // namespace pyrometer
