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
  ::unsetenv("GRPC_DNS_RESOLVER");
  const Clock clock;
  Log log(clock);
  const Destinations destinations(clock, log);
  EXPECT_STREQ(::getenv("GRPC_DNS_RESOLVER"), "native");
}

}  // namespace
}  // namespace pyrometer
