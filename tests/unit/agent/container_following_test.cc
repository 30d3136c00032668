// SPDX-License-Identifier: Apache-2.0
#include "agent/container_following.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace pyrometer {
namespace {

TEST(FollowContainers, IsNobodyIfItIsOff) {
  const Clock clock;
  Log log(clock);
  EXPECT_EQ(FollowContainers({.mode = KubernetesMode::kOff}, clock, log), nullptr);
  EXPECT_NE(FollowContainers({.mode = KubernetesMode::kAuto}, clock, log), nullptr);
}

}  // namespace
}  // namespace pyrometer
