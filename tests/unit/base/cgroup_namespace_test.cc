// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_namespace.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string>
#include <thread>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

std::string NamespaceOf(const std::string& process) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + process + "/ns/cgroup", error).string();
}

TEST(CgroupNamespace, OfTheMachineIsEnteredFromAContainers) {
  const std::string machine = NamespaceOf("2");
  bool alone = false;
  std::string before;
  std::string after;
  // A thread of its own, so that the other tests stay where they are.
  std::jthread([&] {
    alone = ::unshare(CLONE_NEWCGROUP) == 0;
    if (!alone) return;
    before = NamespaceOf("thread-self");
    EXPECT_TRUE(EnterMachineCgroupNamespace(Procfs{}).has_value());
    after = NamespaceOf("thread-self");
  }).join();
  if (!alone || machine.empty()) GTEST_SKIP() << "needs CAP_SYS_ADMIN and CAP_SYS_PTRACE";
  EXPECT_NE(before, machine);
  EXPECT_EQ(after, machine);
}

TEST(CgroupNamespace, IsLeftAloneWhereTheKernelHasJustOne) {
  TemporaryTree tree;
  tree.File("proc/2/status", "Name:\tkthreadd\n");
  EXPECT_TRUE(EnterMachineCgroupNamespace(tree.AsProcfs()).has_value());
}

TEST(CgroupNamespace, CannotBeEnteredWithoutSeeingTheFirstKernelThread) {
  TemporaryTree tree;
  tree.File("proc/thread-self/ns/cgroup", "");
  EXPECT_FALSE(EnterMachineCgroupNamespace(tree.AsProcfs()).has_value());
}

}  // namespace
}  // namespace pyrometer
