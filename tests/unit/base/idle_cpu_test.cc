// SPDX-License-Identifier: Apache-2.0
#include "base/idle_cpu.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pyrometer {
namespace {

TEST(IdleCpu, IsToldByTheNumberOfTasksThatRun) {
  EXPECT_EQ(RunningTasksIn("0.20 0.18 0.12 1/80 11206\n"), 1U);
  EXPECT_EQ(RunningTasksIn("12.00 9.10 3.00 130/4000 7\n"), 130U);
  for (const char* text : {"", "/", "0.20 0.18 0.12", "0.20 x/80", "0.20 -1/80"}) {
    EXPECT_EQ(RunningTasksIn(text), std::nullopt) << text;
  }
}

TEST(IdleCpu, IsNotThereWhereAllAreBusy) {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> busy;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    busy.emplace_back([&is_over] {
      while (!is_over) continue;
    });
  }
  EXPECT_FALSE(HasIdleCpu());
  is_over = true;
  for (std::thread& thread : busy) thread.join();
}

}  // namespace
}  // namespace pyrometer
