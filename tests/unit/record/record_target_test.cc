// SPDX-License-Identifier: Apache-2.0
#include "record/record_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A /proc with the processes that a test asks for.
class RecordTarget : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/record_target_" + std::to_string(getpid());
    std::filesystem::create_directories(root_ + "/self/ns");
    SetPidNamespace("pid:[4026531836]");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void AddTask(uint32_t tid, uint32_t pid, const std::string& state) const {
    const std::string directory = root_ + "/" + std::to_string(tid);
    std::filesystem::create_directory(directory);
    std::ofstream(directory + "/status")
        << "Name:\tState: Z\nState:\t" << state << "\nTgid:\t" << pid << "\n";
  }
  void SetPidNamespace(const std::string& name) const {
    std::filesystem::remove(root_ + "/self/ns/pid");
    std::filesystem::create_symlink(name, root_ + "/self/ns/pid");
  }
  Procfs procfs() const { return {.root = root_, .sys = root_}; }

 private:
  std::string root_;
};

TEST_F(RecordTarget, TakesProcessesThatLive) {
  AddTask(7, 7, "S (sleeping)");
  RecordConfig config;
  config.pids = {Pid(7)};
  config.comms = {"nginx"};
  const Result<SampleFilter> filter = FindTargets(procfs(), config);
  ASSERT_TRUE(filter.has_value());
  EXPECT_THAT(filter->pids, ElementsAre(Pid(7)));
  EXPECT_THAT(filter->comms, ElementsAre("nginx"));
}

TEST_F(RecordTarget, TakesNoProcessForAnotherOfADifferentPidNamespace) {
  SetPidNamespace("pid:[4026532178]");
  AddTask(7, 7, "S (sleeping)");
  RecordConfig config;
  EXPECT_EQ(FindTargets(procfs(), config).error().code(), ErrorCode::kUnsupported);
  config.pids = {Pid(7)};
  EXPECT_EQ(FindTargets(procfs(), config).error().code(), ErrorCode::kUnsupported);
}

TEST_F(RecordTarget, SaysThatAProcessIsNotThere) {
  RecordConfig config;
  config.pids = {Pid(8)};
  const Result<SampleFilter> filter = FindTargets(procfs(), config);
  ASSERT_FALSE(filter.has_value());
  EXPECT_EQ(filter.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(filter.error().message(), HasSubstr("8"));
}

TEST_F(RecordTarget, SaysWhichProcessAThreadBelongsTo) {
  AddTask(9, 7, "R (running)");
  RecordConfig config;
  config.pids = {Pid(9)};
  const Result<SampleFilter> filter = FindTargets(procfs(), config);
  ASSERT_FALSE(filter.has_value());
  EXPECT_EQ(filter.error().code(), ErrorCode::kInvalid);
  EXPECT_THAT(filter.error().message(), HasSubstr("--pid 7"));
}

TEST_F(RecordTarget, DoesNotTakeAProcessThatCannotBeReadForGone) {
  std::filesystem::create_directories(procfs().root + "/7/status");  // read(2) fails with EISDIR
  EXPECT_TRUE(IsAlive(procfs(), Pid(7)));
  RecordConfig config;
  config.pids = {Pid(7)};
  const Result<SampleFilter> filter = FindTargets(procfs(), config);
  ASSERT_FALSE(filter.has_value());
  EXPECT_NE(filter.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(filter.error().message(), HasSubstr("/7/status"));
}

TEST_F(RecordTarget, TakesAZombieForGone) {
  AddTask(7, 7, "Z (zombie)");
  EXPECT_FALSE(IsAlive(procfs(), Pid(7)));
  RecordConfig config;
  config.pids = {Pid(7)};
  EXPECT_EQ(FindTargets(procfs(), config).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace pyrometer
