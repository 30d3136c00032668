// SPDX-License-Identifier: Apache-2.0
#include "agent/own_cost.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using std::chrono::seconds;

constexpr std::string_view kStatEnd =
    " S 1 1 1 0 -1 4194560 0 0 0 0 150 50 0 0 20 0 3 0 100 1 1 1\n";

TEST(OwnUse, AddsUpAProcessAndItsChildren) {
  TemporaryTree tree;
  for (const char* const pid : {"10", "11"}) {
    tree.File(fmt::format("proc/{}/stat", pid), fmt::format("{} (a) b ){}", pid, kStatEnd));
    tree.File(fmt::format("proc/{}/statm", pid), "900 100 50 1 0 1 0\n");
  }
  tree.File("proc/10/task/10/children", "11 ");
  tree.File("proc/11/task/11/children", "");
  tree.File("proc/10/fd/0", "");
  tree.File("proc/10/fdinfo/0", "pos:\t0\nflags:\t02\nmap_type:\t2\nmemlock:\t8192\n");
  tree.File("proc/10/fdinfo/1", "pos:\t0\n");
  const OwnUse use = MeasureOwnUse(tree.AsProcfs(), Pid(10));
  EXPECT_EQ(use.cpu, seconds(4 * 100 / sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(use.resident_bytes, 200U * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(use.kernel_bytes, 8192);
  EXPECT_EQ(use.open_files, 1);
  EXPECT_EQ(use.threads, 1);
}

TEST(OwnUse, OfAProcessThatIsGoneIsNothing) {
  const TemporaryTree tree;
  const OwnUse use = MeasureOwnUse(tree.AsProcfs(), Pid(10));
  EXPECT_EQ(use.cpu.count(), 0);
  EXPECT_EQ(use.resident_bytes, 0);
}

TEST(OwnUse, AShareIsNeverLessThanNothing) {
  const OwnUse more{.cpu = seconds(5)};
  const OwnUse less{.cpu = seconds(3)};
  EXPECT_EQ(CpuShare(more, less, seconds(10)), 0);
  EXPECT_DOUBLE_EQ(CpuShare(less, more, seconds(10)), 0.2);
  EXPECT_EQ(CpuShare(less, more, seconds(0)), 0);
}

TEST(OwnUse, CountsWhatTicksTakeOfOthers) {
  const OwnUse before{.cpu = seconds(3), .ticks = seconds(1)};
  const OwnUse after{.cpu = seconds(4), .ticks = seconds(2)};
  EXPECT_DOUBLE_EQ(CpuShare(before, after, seconds(10)), 0.2);
}

}  // namespace
}  // namespace pyrometer
