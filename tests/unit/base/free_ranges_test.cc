// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/free_ranges.h"

namespace pyrometer {
namespace {

TEST(FreeRanges, TakesUntilNothingIsLeft) {
  FreeRanges free(10);
  EXPECT_EQ(free.Take(4), 0U);
  EXPECT_EQ(free.Take(6), 4U);
  EXPECT_EQ(free.Take(1), std::nullopt);
}

TEST(FreeRanges, MergesWhatIsGivenBackInAnyOrder) {
  FreeRanges free(9);
  ASSERT_EQ(free.Take(3), 0U);
  ASSERT_EQ(free.Take(3), 3U);
  ASSERT_EQ(free.Take(3), 6U);
  free.GiveBack(0, 3);
  free.GiveBack(6, 3);
  EXPECT_EQ(free.Take(4), std::nullopt);
  free.GiveBack(3, 3);
  EXPECT_EQ(free.Take(9), 0U);
}

TEST(FreeRanges, UsesTheFirstGapThatFits) {
  FreeRanges free(10);
  ASSERT_EQ(free.Take(2), 0U);
  ASSERT_EQ(free.Take(5), 2U);
  free.GiveBack(0, 2);
  EXPECT_EQ(free.Take(3), 7U);
  EXPECT_EQ(free.Take(2), 0U);
}

}  // namespace
}  // namespace pyrometer
