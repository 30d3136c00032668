// SPDX-License-Identifier: Apache-2.0
#include "base/dropping_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace pyrometer {
namespace {

using Clock = std::chrono::steady_clock;

TEST(DroppingQueue, KeepsTheOrder) {
  DroppingQueue<int> queue(2);
  EXPECT_EQ(queue.Push(1), std::nullopt);
  EXPECT_EQ(queue.Push(2), std::nullopt);
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.dropped(), 0);
}

TEST(DroppingQueue, DropsTheOldestWhenFull) {
  DroppingQueue<int> queue(2);
  queue.Push(1);
  queue.Push(2);
  EXPECT_EQ(queue.Push(3), 1);
  EXPECT_EQ(queue.Push(4), 2);
  EXPECT_EQ(queue.dropped(), 2);
  EXPECT_EQ(queue.Pop(), 3);
  EXPECT_EQ(queue.Pop(), 4);
}

TEST(DroppingQueue, GivesBackWhatIsPushedAfterClosing) {
  DroppingQueue<std::unique_ptr<int>> queue(2);
  queue.Push(std::make_unique<int>(1));
  queue.Close();
  const auto dropped = queue.Push(std::make_unique<int>(2));
  ASSERT_TRUE(dropped.has_value());
  EXPECT_EQ(**dropped, 2);
  EXPECT_EQ(queue.dropped(), 1);
  EXPECT_EQ(**queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(DroppingQueue, LetsTheNextTakeOverWhatIsDropped) {
  DroppingQueue<int> queue(2);
  const auto add = [](int& next, const int& dropped) { next += dropped; };
  for (const int value : {1, 10, 100, 1000}) queue.Push(value, add);
  EXPECT_EQ(queue.Pop(), 111);
  EXPECT_EQ(queue.Pop(), 1000);
  EXPECT_EQ(queue.dropped(), 2U);
}

TEST(DroppingQueue, WakesTheOneWhoWaits) {
  DroppingQueue<int> queue(1);
  const Clock::time_point late = Clock::now() + std::chrono::minutes(1);
  std::optional<int> first;
  std::optional<int> second;
  std::optional<int> third(3);
  std::jthread consumer([&] {
    first = queue.Pop();
    second = queue.Pop();
    third = queue.Pop();
  });
  queue.Push(1);
  while (queue.size() > 0 && Clock::now() < late) std::this_thread::yield();
  queue.Push(2);
  queue.Close();
  consumer.join();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(third, std::nullopt);
  EXPECT_LT(Clock::now(), late);
}

TEST(DroppingQueue, LosesNothingUncountedBetweenThreads) {
  constexpr int kValues = 10'000;
  DroppingQueue<int> queue(3);
  std::jthread producer([&queue] {
    for (int i = 0; i < kValues; ++i) queue.Push(i);
    queue.Close();
  });
  int received = 0;
  int last = -1;
  while (const std::optional<int> value = queue.Pop()) {
    EXPECT_GT(*value, last);
    last = *value;
    ++received;
  }
  EXPECT_EQ(last, kValues - 1);
  EXPECT_EQ(static_cast<uint64_t>(received) + queue.dropped(), kValues);
}

}  // namespace
}  // namespace pyrometer
