// SPDX-License-Identifier: Apache-2.0
#include "base/sysctl.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

TEST(ReadSysctl, ReadsANumber) {
  TemporaryTree tree;
  const auto read = [&] { return ReadSysctl(tree.AsProcfs(), "kernel/perf_event_paranoid"); };
  EXPECT_EQ(read(), std::nullopt);
  for (const auto& [text, number] :
       {std::pair("3\n", std::optional<int64_t>(3)), std::pair("-1\n", std::optional<int64_t>(-1)),
        std::pair("x\n", std::optional<int64_t>()), std::pair("1 2\n", std::optional<int64_t>()),
        std::pair("", std::optional<int64_t>())}) {
    tree.File("proc/sys/kernel/perf_event_paranoid", text);
    EXPECT_EQ(read(), number) << text;
  }
}

}  // namespace
}  // namespace pyrometer
