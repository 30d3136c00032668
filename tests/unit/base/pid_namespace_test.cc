// SPDX-License-Identifier: Apache-2.0
#include "base/pid_namespace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;

TEST(PidNamespace, OfTheHostIsFine) {
  TemporaryTree tree;
  tree.Link("proc/self/ns/pid", "pid:[4026531836]");
  EXPECT_TRUE(CheckPidNamespace(tree.AsProcfs()).has_value());
}

TEST(PidNamespace, MayNotDifferForOurChildren) {
  TemporaryTree tree;
  tree.Link("proc/self/ns/pid", "pid:[4026531836]");
  tree.Link("proc/self/ns/pid_for_children", "pid:[4026531836]");
  EXPECT_TRUE(CheckPidNamespace(tree.AsProcfs()).has_value());
  TemporaryTree unshared;
  unshared.Link("proc/self/ns/pid", "pid:[4026531836]");
  unshared.File("proc/self/ns/pid_for_children", "");  // a link that cannot be read
  const Result<void> checked = CheckPidNamespace(unshared.AsProcfs());
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(checked.error().message(), HasSubstr("--fork"));
}

TEST(PidNamespace, OfAContainerIsRefusedWithWhatToDo) {
  TemporaryTree tree;
  tree.Link("proc/self/ns/pid", "pid:[4026532178]");
  const Result<void> checked = CheckPidNamespace(tree.AsProcfs());
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(checked.error().message(), HasSubstr("hostPID: true"));
  EXPECT_THAT(checked.error().message(), HasSubstr("--pid=host"));
}

TEST(PidNamespace, IsTheOnlyOneOfAKernelWithoutAnyOther) {
  TemporaryTree tree;
  tree.File("proc/self/status", "Name:\tpyrometer\n");
  EXPECT_TRUE(CheckPidNamespace(tree.AsProcfs()).has_value());
}

// /proc/self leads nowhere in the /proc of a namespace that we are not in.
TEST(PidNamespace, MustBeThatOfProc) {
  TemporaryTree tree;
  tree.File("proc/1/status", "Name:\tinit\n");
  const Result<void> checked = CheckPidNamespace(tree.AsProcfs());
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(checked.error().message(), HasSubstr("does not show this process"));
}

}  // namespace
}  // namespace pyrometer
