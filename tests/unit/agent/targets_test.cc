// SPDX-License-Identifier: Apache-2.0
#include "agent/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Ne;
using testing::SizeIs;

// A machine with a version 2 hierarchy that has one slice, and a version 1 one.
class TargetsTest : public testing::Test {
 protected:
  TargetsTest() {
    tree_.Directory("cgroup/unified/web.slice");
    tree_.Directory("cgroup/cpu/old");
    tree_.File("proc/self/mountinfo",
               fmt::format("1 0 0:1 / {} rw - cgroup2 cgroup2 rw\n"
                           "2 0 0:2 / {} rw - cgroup cgroup rw,cpu\n",
                           tree_.Path("cgroup/unified"), tree_.Path("cgroup/cpu")));
  }

  Result<Targets> Find(const FilterConfig& config) { return FindTargets(tree_.AsProcfs(), config); }

  TemporaryTree tree_;
};

TEST_F(TargetsTest, AreEverythingByDefault) {
  const Result<Targets> targets = Find({});
  ASSERT_TRUE(targets.has_value());
  EXPECT_THAT(targets->filter.cgroups, IsEmpty());
  EXPECT_THAT(targets->filter.comms, IsEmpty());
  EXPECT_THAT(targets->denied, IsEmpty());
}

TEST_F(TargetsTest, HaveTheIdsOfCgroups) {
  const Result<Targets> targets =
      Find({.comms = {"nginx"}, .cgroups = {"web.slice"}, .exclude_cgroups = {"web.slice"}});
  ASSERT_TRUE(targets.has_value());
  EXPECT_THAT(targets->filter.comms, ElementsAre("nginx"));
  EXPECT_THAT(targets->filter.cgroups, ElementsAre(Ne(0)));
  EXPECT_EQ(targets->denied, targets->filter.cgroups);
  EXPECT_THAT(targets->missing, IsEmpty());
}

TEST_F(TargetsTest, AreNothingWhereAllThatIsWantedIsMissing) {
  const Result<Targets> targets =
      Find({.comms = {}, .cgroups = {"gone.slice"}, .exclude_cgroups = {}});
  ASSERT_TRUE(targets.has_value());
  EXPECT_THAT(targets->filter.cgroups, SizeIs(1));
  EXPECT_THAT(targets->missing, ElementsAre("gone.slice"));
}

TEST_F(TargetsTest, FindsNothingOutsideOfTheMountForPathsOfAContainer) {
  const std::vector<std::string> paths = {"/../cpu/old", "/../unified/web.slice"};
  EXPECT_THAT(FindVersion2Cgroups(tree_.AsProcfs(), paths), IsEmpty());
}

TEST_F(TargetsTest, FindsCgroupsOfVersion2ByTheirPaths) {
  const std::vector<std::string> paths = {"/gone.slice", "/web.slice", "/old"};
  EXPECT_EQ(FindVersion2Cgroups(tree_.AsProcfs(), paths),
            Find({.comms = {}, .cgroups = {"web.slice"}, .exclude_cgroups = {}})->filter.cgroups);
  EXPECT_THAT(FindVersion2Cgroups(tree_.AsProcfs(), {}), IsEmpty());
  const TemporaryTree empty;
  EXPECT_THAT(FindVersion2Cgroups(empty.AsProcfs(), paths), IsEmpty());
}

TEST_F(TargetsTest, RefuseToExcludeWhatTheKernelSideCannotTell) {
  const Result<Targets> targets =
      Find({.comms = {}, .cgroups = {}, .exclude_cgroups = {tree_.Path("cgroup/cpu/old")}});
  ASSERT_FALSE(targets.has_value());
  EXPECT_EQ(targets.error().code(), ErrorCode::kUnsupported);
}

TEST_F(TargetsTest, RefuseCgroupsOfTwoHierarchies) {
  const Result<Targets> targets = Find(
      {.comms = {}, .cgroups = {"web.slice", tree_.Path("cgroup/cpu/old")}, .exclude_cgroups = {}});
  ASSERT_FALSE(targets.has_value());
  EXPECT_EQ(targets.error().code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace pyrometer
