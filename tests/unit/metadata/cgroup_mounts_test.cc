// SPDX-License-Identifier: Apache-2.0
#include "metadata/cgroup_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<CgroupMount> Mounts(std::string_view mountinfo) {
  TemporaryTree tree;
  tree.File("proc/self/mountinfo", mountinfo);
  return *ReadCgroupMounts(tree.AsProcfs());
}

TEST(ReadCgroupMounts, FindsTheOnlyHierarchyOfVersion2) {
  EXPECT_THAT(Mounts("22 27 0:21 / /proc rw,relatime - proc proc rw\n"
                     "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 "
                     "rw,nsdelegate\n"),
              ElementsAre(CgroupMount{"/sys/fs/cgroup", true, ""}));
}

TEST(ReadCgroupMounts, SortsByUse) {
  EXPECT_THAT(
      Mounts("1 0 0:1 / /c/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd\n"
             "2 0 0:2 / /c/blkio rw - cgroup cgroup rw,blkio\n"
             "3 0 0:3 / /c/memory rw - cgroup cgroup rw,seclabel,memory\n"
             "4 0 0:4 / /c/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
             "5 0 0:5 / /c/unified rw - cgroup2 cgroup2 rw\n"),
      ElementsAre(
          CgroupMount{"/c/unified", true, ""}, CgroupMount{"/c/cpu,cpuacct", false, "cpu,cpuacct"},
          CgroupMount{"/c/memory", false, "memory"}, CgroupMount{"/c/blkio", false, "blkio"},
          CgroupMount{"/c/systemd", false, "name=systemd"}));
}

TEST(ReadCgroupMounts, ReadsEscapedPaths) {
  EXPECT_THAT(Mounts("5 0 0:5 / /a\\040b\\134c\\9 rw - cgroup2 cgroup2 rw\n"),
              ElementsAre(CgroupMount{"/a b\\c\\9", true, ""}));
}

TEST(ReadCgroupMounts, KeepsTheFirstMountOfAHierarchy) {
  EXPECT_THAT(Mounts("5 0 0:5 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
                     "6 0 0:5 / /chroot/cgroup rw - cgroup2 cgroup2 rw\n"),
              ElementsAre(CgroupMount{"/sys/fs/cgroup", true, ""}));
}

TEST(ReadCgroupMounts, PassesOverLinesThatAreNone) {
  EXPECT_THAT(Mounts("\n - \n1 2 3 - cgroup2\n5 0 0:5 / /x rw cgroup2 cgroup2 rw\n"), IsEmpty());
}

TEST(ReadCgroupMounts, FailsWithoutMountinfo) {
  const TemporaryTree tree;
  EXPECT_EQ(ReadCgroupMounts(tree.AsProcfs()).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace pyrometer
