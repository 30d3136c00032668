// SPDX-License-Identifier: Apache-2.0
#include "process/token_bucket.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using namespace std::chrono_literals;

MonotonicTime Milliseconds(uint64_t n) {
  return MonotonicTime(n * 1'000'000);
}

TEST(TokenBucket, AllowsABurstAndThenOneInEachInterval) {
  TokenBucket bucket(3, 1s);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(Milliseconds(5000)));
  EXPECT_FALSE(bucket.Take(Milliseconds(5000)));
  EXPECT_FALSE(bucket.Take(Milliseconds(5999)));
  EXPECT_TRUE(bucket.Take(Milliseconds(6000)));
  EXPECT_FALSE(bucket.Take(Milliseconds(6500)));
  EXPECT_TRUE(bucket.Take(Milliseconds(7000)));
}

TEST(TokenBucket, HoldsNoMoreThanABurst) {
  TokenBucket bucket(2, 1s);
  EXPECT_TRUE(bucket.Take(Milliseconds(0)));
  EXPECT_TRUE(bucket.Take(Milliseconds(100'000)));
  EXPECT_TRUE(bucket.Take(Milliseconds(100'000)));
  EXPECT_FALSE(bucket.Take(Milliseconds(100'000)));
}

TEST(TokenBucket, CountsTheIntervalFromTheFirstTaken) {
  TokenBucket bucket(1, 1s);
  EXPECT_TRUE(bucket.Take(Milliseconds(9500)));
  EXPECT_FALSE(bucket.Take(Milliseconds(10'400)));
  EXPECT_TRUE(bucket.Take(Milliseconds(10'500)));
}

TEST(TokenBucket, IsChargedInAdvance) {
  TokenBucket bucket(3, 1s);
  EXPECT_TRUE(bucket.Take(Milliseconds(0)));
  bucket.Charge(7);
  EXPECT_FALSE(bucket.Take(Milliseconds(5999)));
  EXPECT_TRUE(bucket.Take(Milliseconds(6000)));
  EXPECT_FALSE(bucket.Take(Milliseconds(6999)));
}

}  // namespace
}  // namespace pyrometer
