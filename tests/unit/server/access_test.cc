// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

TEST(Access, WithoutATokenEverybodyMayAsk) {
  const Access access("");
  EXPECT_TRUE(access.MayAsk(""));
  EXPECT_TRUE(access.MayAsk("Bearer whatever"));
  EXPECT_EQ(access.Trouble(), "");
}

TEST(Access, OnlyNamesOfOtherHostsMayBeForeign) {
  const Access access("");
  for (const char* host : {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "local",
                           "1.2.3", "[evil]", "localhost.", "a"}) {
    EXPECT_TRUE(access.MayBeForeign(host)) << host;
  }
  for (const char* host : {"localhost", "LocalHost:4041", "agent.localhost", "127.0.0.1",
                           "[::1]:80", "127.9.9.9:1", "192.168.1.1:4041"}) {
    EXPECT_FALSE(access.MayBeForeign(host)) << host;
  }
}

TEST(Access, AForeignPageDoesNotHaveTheToken) {
  EXPECT_FALSE(Access("/run/token").MayBeForeign("agent.example"));
}

}  // namespace
}  // namespace pyrometer
