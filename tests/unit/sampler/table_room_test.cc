// SPDX-License-Identifier: Apache-2.0
#include "sampler/table_room.h"

#include <gtest/gtest.h>

#include <optional>

namespace pyrometer {
namespace {

constexpr MonotonicTime kNow(5'000'000'000);
constexpr MonotonicTime kSoon(5'500'000'000);
constexpr MonotonicTime kLater(7'000'000'000);

TEST(TableRoom, FreesSlotsWhenTheyHaveRested) {
  TableRoom room(2, 8);
  EXPECT_EQ(room.TakeSlot(), 1U);
  EXPECT_EQ(room.TakeSlot(), std::nullopt);
  room.GiveBackSlot(1, kNow);
  EXPECT_FALSE(room.Reuse(kSoon).slots);
  EXPECT_EQ(room.TakeSlot(), std::nullopt);
  const TableRoom::Freed freed = room.Reuse(kLater);
  EXPECT_TRUE(freed.slots);
  EXPECT_FALSE(freed.pages);
  EXPECT_EQ(room.TakeSlot(), 1U);
}

TEST(TableRoom, FreesPagesWhenTheyHaveRested) {
  TableRoom room(2, 8);
  const std::optional<uint32_t> first = room.TakePages(6);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(room.TakePages(4), std::nullopt);
  room.GiveBackPages(*first, 6, kNow);
  EXPECT_TRUE(room.AreAtRest(6));
  EXPECT_FALSE(room.AreAtRest(7));
  EXPECT_EQ(room.TakePages(4), std::nullopt);
  const TableRoom::Freed freed = room.Reuse(kLater);
  EXPECT_FALSE(freed.slots);
  EXPECT_TRUE(freed.pages);
  EXPECT_FALSE(room.AreAtRest(1));
  EXPECT_TRUE(room.TakePages(4).has_value());
}

}  // namespace
}  // namespace pyrometer
