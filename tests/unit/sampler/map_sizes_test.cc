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

}  // namespace
}  // namespace pyrometer
