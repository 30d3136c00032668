// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "agent/destinations.h"
#include "base/clock.h"
#include "base/log.h"

namespace pyrometer {
namespace {

// Later, threads that read the environment would race with us.
TEST(NetworkEnvironment, IsSetBeforeAnySinkIsMade) {
  const Clock clock;
  Log log(clock);
  const Destinations destinations(clock, log);
  EXPECT_NE(::getenv("GRPC_DNS_RESOLVER"), nullptr);
}

}  // namespace
}  // namespace pyrometer
