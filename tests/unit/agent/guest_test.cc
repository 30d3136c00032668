// SPDX-License-Identifier: Apache-2.0
#include "agent/guest.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

class GuestTest : public testing::Test {
 protected:
  // Looks ten seconds later, having used this much CPU time.
  Guest::Advice LookAfter(milliseconds used) {
    use_.cpu += used;
    now_ = After(now_, Guest::kInterval);
    return guest_.Look(now_);
  }

  OwnUse use_;
  MonotonicTime now_{1'000'000'000};
  Guest guest_{{.frequency = Hertz{99}, .cpu = 0.02, .memory = 1000}, [this] { return use_; }};
};

TEST_F(GuestTest, LowersTheFrequencyOfAnAgentThatUsesTooMuch) {
  Guest::Advice advice;
  for (unsigned i = 0; i <= CpuBudget::kLooksDown; ++i) advice = LookAfter(milliseconds(400));
  ASSERT_TRUE(advice.frequency.has_value());
  EXPECT_EQ(*advice.frequency, Hertz{45});
  EXPECT_EQ(guest_.status().frequency, Hertz{45});
  EXPECT_EQ(guest_.status().slowdowns, 1);
  EXPECT_DOUBLE_EQ(guest_.status().cpu, 0.04);
}

TEST_F(GuestTest, ShedsWhenMemoryIsShort) {
  EXPECT_FALSE(LookAfter(milliseconds(0)).shed);
  use_.resident_bytes = 600;
  use_.kernel_bytes = 600;
  EXPECT_TRUE(LookAfter(milliseconds(0)).shed);
  EXPECT_TRUE(guest_.status().over_memory);
  use_.resident_bytes = 300;
  EXPECT_FALSE(LookAfter(milliseconds(0)).shed);
  EXPECT_EQ(guest_.status().sheds, 1);
}

// What is shed has to be made again, which takes CPU time: in vain if the rest is too much by
// itself.
TEST_F(GuestTest, ShedsLessOftenWhenThatDoesNotHelp) {
  use_.resident_bytes = 2000;
  unsigned sheds = 0;
  for (int i = 0; i < 360; ++i) sheds += LookAfter(milliseconds(0)).shed ? 1 : 0;
  EXPECT_GE(sheds, 5);
  EXPECT_LE(sheds, 12);
  use_.resident_bytes = 500;
  for (int i = 0; i < 360; ++i) EXPECT_FALSE(LookAfter(milliseconds(0)).shed);
  use_.resident_bytes = 2000;
  EXPECT_TRUE(LookAfter(milliseconds(0)).shed);
}

TEST_F(GuestTest, BeginsAnewWithNewLimits) {
  for (unsigned i = 0; i <= CpuBudget::kLooksDown; ++i) LookAfter(milliseconds(400));
  guest_.SetLimits({.frequency = Hertz{199}, .cpu = 1, .memory = 1000});
  EXPECT_EQ(guest_.status().frequency, Hertz{199});
  for (unsigned i = 0; i <= CpuBudget::kLooksDown; ++i) LookAfter(milliseconds(400));
  EXPECT_EQ(guest_.status().frequency, Hertz{199});
}

}  // namespace
}  // namespace pyrometer
