// SPDX-License-Identifier: Apache-2.0
#include "sampler/map_sizes.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using std::chrono::seconds;

TEST(MapSizes, HoldsAWindowOfTicksThatAllDiffer) {
  EXPECT_GE(MapSizes::For(Hertz{99}, 4, seconds(5)).counts, 99U * 4 * 5);
}

TEST(MapSizes, IsNeverTiny) {
  EXPECT_EQ(MapSizes::For(Hertz{1}, 1, seconds(1)).counts, MapSizes::kMinEntries);
}

TEST(MapSizes, IsBoundedByOneSecondOfTicksOnLargeMachines) {
  EXPECT_EQ(MapSizes::For(Hertz{99}, 256, seconds(60)).counts, 99U * 256);
  EXPECT_EQ(MapSizes::For(Hertz{999}, 2, seconds(60)).counts, MapSizes::kMaxEntries);
}

TEST(MapSizes, SaysHowLongAMapHasRoomAtLeast) {
  EXPECT_EQ(MapSizes::TimeUntil(256, 56, 200), seconds(1));
  EXPECT_EQ(MapSizes::TimeUntil(256, 256, 200), seconds(0));
  EXPECT_EQ(MapSizes::TimeUntil(256, 300, 200), seconds(0)) << "those that found no room count";
  EXPECT_GT(MapSizes::TimeUntil(256, 0, 0), seconds(1)) << "nothing is sampled yet";
}

}  // namespace
}  // namespace pyrometer
