// SPDX-License-Identifier: Apache-2.0
#include "agent/cpu_budget.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

// The frequency after so many looks at the same use.
Hertz After(CpuBudget& budget, unsigned looks, double share) {
  for (unsigned i = 0; i < looks; ++i) budget.Look(share);
  return budget.now();
}

TEST(CpuBudget, ChangesNothingWithinTheBudget) {
  CpuBudget budget(Hertz{99}, 0.02);
  EXPECT_EQ(After(budget, 100, 0.019), Hertz{99});
}

TEST(CpuBudget, OneBusyLookIsNotEnough) {
  CpuBudget budget(Hertz{99}, 0.02);
  EXPECT_FALSE(budget.Look(0.5).has_value());
  EXPECT_EQ(budget.now(), Hertz{99});
}

TEST(CpuBudget, LowersTheFrequencyByWhatIsTooMuch) {
  CpuBudget budget(Hertz{99}, 0.02);
  EXPECT_EQ(After(budget, CpuBudget::kLooksDown, 0.04), Hertz{45});
}

TEST(CpuBudget, GoesNoLowerThanIsUseful) {
  CpuBudget budget(Hertz{99}, 0.02);
  EXPECT_EQ(After(budget, 100, 5.0), CpuBudget::kLeast);
  EXPECT_TRUE(budget.over());
}

TEST(CpuBudget, AUsersLowerFrequencyIsNotRaised) {
  CpuBudget budget(Hertz{5}, 0.02);
  EXPECT_EQ(After(budget, 100, 5.0), Hertz{5});
}

TEST(CpuBudget, RaisesItAgainWhenThereIsRoom) {
  CpuBudget budget(Hertz{99}, 0.02);
  After(budget, CpuBudget::kLooksDown, 0.04);
  EXPECT_EQ(After(budget, CpuBudget::kLooksUp - 1, 0.005), Hertz{45});
  EXPECT_EQ(After(budget, CpuBudget::kLooksDown, 0.005), Hertz{68});
  EXPECT_EQ(After(budget, 100 * CpuBudget::kLooksUp, 0.005), Hertz{99});
}

}  // namespace
}  // namespace pyrometer
