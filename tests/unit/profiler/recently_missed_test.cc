// SPDX-License-Identifier: Apache-2.0
#include "profiler/recently_missed.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

constexpr MonotonicTime At(uint64_t seconds) {
  return MonotonicTime(seconds * 1'000'000'000);
}

TEST(RecentlyMissed, ForgetsEachObjectAfterAWhile) {
  RecentlyMissed missed(std::chrono::seconds(10), 100);
  EXPECT_FALSE(missed.Contains(ObjectId(1), At(1)));
  missed.Add(ObjectId(1), At(1));
  missed.Add(ObjectId(2), At(6));
  EXPECT_TRUE(missed.Contains(ObjectId(1), At(10)));
  EXPECT_FALSE(missed.Contains(ObjectId(1), At(11)));
  EXPECT_TRUE(missed.Contains(ObjectId(2), At(11)));
  missed.Add(ObjectId(1), At(11));
  EXPECT_FALSE(missed.Contains(ObjectId(2), At(16)));
  EXPECT_TRUE(missed.Contains(ObjectId(1), At(20))) << "it was missed again";
}

TEST(RecentlyMissed, RemembersNoMoreThanItsLimit) {
  RecentlyMissed missed(std::chrono::seconds(10), 2);
  for (const uint32_t object : {1, 2, 3}) missed.Add(ObjectId(object), At(1));
  EXPECT_FALSE(missed.Contains(ObjectId(1), At(1)));
  EXPECT_TRUE(missed.Contains(ObjectId(2), At(1)));
  EXPECT_TRUE(missed.Contains(ObjectId(3), At(1)));
}

}  // namespace
}  // namespace pyrometer
