// SPDX-License-Identifier: Apache-2.0
#include "base/perf_paranoia.h"

#include <gtest/gtest.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

TEST(ReadPerfParanoia, ReadsTheLevel) {
  TemporaryTree tree;
  EXPECT_EQ(ReadPerfParanoia(tree.AsProcfs()), std::nullopt);
  tree.File("proc/sys/kernel/perf_event_paranoid", "3\n");
  EXPECT_EQ(ReadPerfParanoia(tree.AsProcfs()), 3);
  tree.File("proc/sys/kernel/perf_event_paranoid", "-1\n");
  EXPECT_EQ(ReadPerfParanoia(tree.AsProcfs()), -1);
  tree.File("proc/sys/kernel/perf_event_paranoid", "x\n");
  EXPECT_EQ(ReadPerfParanoia(tree.AsProcfs()), std::nullopt);
}

}  // namespace
}  // namespace pyrometer
