// SPDX-License-Identifier: Apache-2.0
#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace pyrometer {
namespace {

TEST(BoundedQueue, KeepsTheOrder) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
}

TEST(BoundedQueue, HasNoRoomWhenFull) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.HasRoom());
  queue.Push(1);
  EXPECT_FALSE(queue.HasRoom());
}

TEST(BoundedQueue, GivesOutWhatIsLeftAfterClosing) {
  BoundedQueue<int> queue(2);
  queue.Push(1);
  queue.Close();
  EXPECT_FALSE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueue, HandsEverythingFromThreadToThread) {
  BoundedQueue<int> queue(3);
  std::jthread producer([&queue] {
    for (int i = 0; i < 1000; ++i) queue.Push(i);
    queue.Close();
  });
  int expected = 0;
  while (const std::optional<int> value = queue.Pop()) EXPECT_EQ(*value, expected++);
  EXPECT_EQ(expected, 1000);
}

}  // namespace
}  // namespace pyrometer
