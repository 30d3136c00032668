// SPDX-License-Identifier: Apache-2.0
#include "server/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using testing::HasSubstr;

TEST(ListenAddress, ReadsHostsAndPorts) {
  const struct {
    const char* text;
    const char* host;
    uint16_t port;
  } kCases[] = {{"127.0.0.1:4041", "127.0.0.1", 4041},
                {"[::]:4041", "::", 4041},
                {"[::1]:0", "::1", 0},
                {"localhost:80", "localhost", 80},
                {":65535", "", 65535}};
  for (const auto& c : kCases) {
    const auto address = ParseListenAddress(c.text);
    ASSERT_TRUE(address) << c.text;
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
  }
}

TEST(ListenAddress, RefusesWhatIsNone) {
  for (const char* text : {"", "4041", "localhost", "localhost:", "::1:4041", "[]:1", "a:65536",
                           "a:-1", "a:1x", "http://a:1"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code(), ErrorCode::kInvalid);
    EXPECT_THAT(address.error().message(), HasSubstr("127.0.0.1:4041"));
  }
}

TEST(ListenAddress, ThePortThatTheKernelChoseCanBeRead) {
  const auto socket = Listen({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(socket) << socket.error().message();
  const LocalAddress local = LocalAddressOf(socket->get());
  EXPECT_GT(local.port, 0);
  EXPECT_TRUE(local.loopback);
  EXPECT_EQ(local.text, "127.0.0.1:" + std::to_string(local.port));
}

TEST(ListenAddress, AnAddressInUseIsNamed) {
  const auto first = Listen({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(first) << first.error().message();
  const LocalAddress local = LocalAddressOf(first->get());
  const auto second = Listen({.host = "127.0.0.1", .port = local.port});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr(local.text));
}

TEST(ListenAddress, EveryAddressIsNotLoopback) {
  const auto socket = Listen({.host = "", .port = 0});
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_FALSE(LocalAddressOf(socket->get()).loopback);
}

}  // namespace
}  // namespace pyrometer
