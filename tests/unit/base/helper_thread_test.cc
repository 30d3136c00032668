// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace pyrometer {
namespace {

TEST(HelperThread, DoesOnePieceOfWorkAfterTheOther) {
  const auto helper = *HelperThread::Start();
  int done = 0;
  std::thread::id worker;
  for (int i = 0; i < 100; ++i) {
    helper->Begin([&] {
      ++done;
      worker = std::this_thread::get_id();
    });
    helper->Await();
    ASSERT_EQ(done, i + 1);
  }
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST(HelperThread, WorksBesideTheOther) {
  const auto helper = *HelperThread::Start();
  std::promise<void> asked;
  std::promise<void> answered;
  helper->Begin([&] {
    asked.get_future().wait();
    answered.set_value();
  });
  asked.set_value();
  answered.get_future().wait();
  helper->Await();
}

TEST(HelperThread, EndsWithoutWork) {
  EXPECT_TRUE(HelperThread::Start().has_value());
}

}  // namespace
}  // namespace pyrometer
