// SPDX-License-Identifier: Apache-2.0
#include "sampler/pool_room.h"

#include <gtest/gtest.h>

#include "pyrometer/abi/sampler.h"
#include "sampler/quarantine.h"

namespace pyrometer {
namespace {

constexpr MonotonicTime kNow(5'000'000'000);
constexpr MonotonicTime kRested(kNow.value() + 1 +
                                std::chrono::nanoseconds(kReaderQuarantine).count());

Result<void> AtOnce() {
  return {};
}

TEST(PoolRoom, PutsEachRegionIntoOnePart) {
  PoolRoom room(3 * PYRO_POOL_PART, AtOnce);
  EXPECT_EQ(room.Take(PYRO_POOL_PART - 10), 0U);
  EXPECT_EQ(room.Take(20), PYRO_POOL_PART);
  EXPECT_EQ(room.Take(10), PYRO_POOL_PART - 10);
  EXPECT_EQ(room.Take(PYRO_POOL_PART), 2 * PYRO_POOL_PART);
  EXPECT_EQ(room.Take(PYRO_POOL_PART), std::nullopt);
  EXPECT_TRUE(room.MayHave(PYRO_POOL_PART));
  EXPECT_FALSE(room.MayHave(PYRO_POOL_PART + 1)) << "not even an empty one";
  EXPECT_EQ(room.taken(), 2 * PYRO_POOL_PART + 20);
}

TEST(PoolRoom, FreesAfterARest) {
  PoolRoom room(2 * PYRO_POOL_PART, AtOnce);
  ASSERT_EQ(room.Take(PYRO_POOL_PART), 0U);
  ASSERT_EQ(room.Take(PYRO_POOL_PART), PYRO_POOL_PART);
  room.GiveBack(PYRO_POOL_PART, PYRO_POOL_PART, kNow);
  room.Reuse(kNow);
  EXPECT_EQ(room.Take(1), std::nullopt);
  EXPECT_EQ(room.resting(), PYRO_POOL_PART);
  room.Reuse(kRested);
  EXPECT_EQ(room.resting(), 0U);
  EXPECT_EQ(room.Take(PYRO_POOL_PART), PYRO_POOL_PART);
}

TEST(PoolRoom, FreesAtOnceWhatNobodyReads) {
  PoolRoom* self = nullptr;
  PoolRoom room(16, [&]() -> Result<void> {
    self->GiveBack(8, 8, kNow);  // while the kernel waits
    return {};
  });
  self = &room;
  ASSERT_EQ(room.Take(8), 0U);
  ASSERT_EQ(room.Take(8), 8U);
  room.GiveBack(0, 8, kNow);
  ASSERT_TRUE(room.AwaitUnread().has_value());
  room.Reuse(kNow);
  EXPECT_EQ(room.unread(), 1U);
  EXPECT_EQ(room.given_back(), 2U);
  EXPECT_EQ(room.Take(8), 0U);
  EXPECT_EQ(room.Take(8), std::nullopt) << "a program may read it since";
}

TEST(PoolRoom, FreesNothingWhenTheWaitFails) {
  PoolRoom room(16, [] { return Result<void>(Fail(ErrorCode::kIo, "no grace period")); });
  ASSERT_EQ(room.Take(16), 0U);
  room.GiveBack(0, 16, kNow);
  EXPECT_FALSE(room.AwaitUnread().has_value());
  room.Reuse(kNow);
  EXPECT_EQ(room.Take(16), std::nullopt);
}

}  // namespace
}  // namespace pyrometer
