// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/http_server.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/server/fake_agent.h"
#include "tests/unit/server/test_client.h"

namespace pyrometer {

// A server of a made-up agent on a port of the kernel's choice. Its clock stands still: no limit
// ends what a test does, however slow the machine is, unless the test moves it.
class ServerTest : public testing::Test {
 protected:
  HttpServerOptions Options() const { return {.clock = clock_}; }
  void Start() { Start(Options()); }
  void Start(HttpServerOptions options) {
    options.listen = "127.0.0.1:0";
    auto server = HttpServer::Start(agent_, std::move(options));
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }

  TestClient Connect() const { return TestClient(server_->port()); }
  Answer Get(const std::string& target, const std::string& headers = "") const {
    return Connect().Get(target, headers);
  }

  FakeClock clock_;
  FakeAgent agent_;
  std::unique_ptr<HttpServer> server_;  // ends before its clock and the agent
};

}  // namespace pyrometer
