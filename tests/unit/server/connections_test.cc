// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <vector>

#include "tests/shared/eventually.h"
#include "tests/unit/server/server_fixture.h"

namespace pyrometer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

class ConnectionsTest : public ServerTest {
 protected:
  // Of the limits that a test looks at. A server whose clock stands still looks at it again after
  // so long, and nothing ends by itself.
  static constexpr milliseconds kLimit{10};

  // Moves the clock, limit by limit, until the client has something to receive.
  void PassUntilNewsFor(const TestClient& client) {
    const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
    while (!client.HasNews(kLimit)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "no limit ends it";
      clock_.Advance(kLimit);
    }
  }
};

TEST_F(ConnectionsTest, ServesSeveralRequestsOnOne) {
  Start();
  TestClient client = Connect();
  client.Ask("/healthz");
  client.Ask("/readyz");  // before the first answer
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(client.Get("/nothing").status, 404);
  EXPECT_EQ(client.Get("/healthz").status, 200);
}

TEST_F(ConnectionsTest, EndsWhenTheClientWantsIt) {
  Start();
  TestClient client = Connect();
  EXPECT_EQ(client.Get("/healthz", "Connection: close\r\n").status, 200);
  EXPECT_TRUE(client.Ended());
}

TEST_F(ConnectionsTest, EndsAfterItsLimitOfRequests) {
  HttpServerOptions options = Options();
  options.limits.requests = 2;
  Start(std::move(options));
  TestClient client = Connect();
  EXPECT_EQ(client.Get("/healthz").Header("Connection"), "");
  EXPECT_EQ(client.Get("/healthz").Header("Connection"), "close");
  EXPECT_TRUE(client.Ended());
}

TEST_F(ConnectionsTest, ARequestThatDoesNotComeInTimeIsToldSo) {
  HttpServerOptions options = Options();
  options.limits.head = kLimit;
  options.limits.idle = hours(24);
  Start(std::move(options));
  TestClient slow = Connect();
  EXPECT_EQ(slow.Get("/healthz").status, 200);
  // From its first byte on: that may come whenever it likes, as the connection is idle until then.
  clock_.Advance(hours(23));
  slow.Send("GET /healthz HTTP/1.1\r\nHost: loc");
  PassUntilNewsFor(slow);
  EXPECT_EQ(slow.Receive().status, 408);
  EXPECT_TRUE(slow.Ended());
}

TEST_F(ConnectionsTest, OneThatIsSilentFromItsBeginningEnds) {
  HttpServerOptions options = Options();
  options.limits.head = kLimit;
  options.limits.idle = hours(24);
  Start(std::move(options));
  TestClient silent = Connect();
  PassUntilNewsFor(silent);
  EXPECT_TRUE(silent.Ended());
}

TEST_F(ConnectionsTest, AnIdleOneEnds) {
  HttpServerOptions options = Options();
  options.limits.head = hours(24);
  options.limits.idle = kLimit;
  Start(std::move(options));
  TestClient client = Connect();
  EXPECT_EQ(client.Get("/healthz").status, 200);
  clock_.Advance(kLimit - milliseconds(1));
  EXPECT_EQ(client.Get("/healthz").status, 200) << "not before its time";
  PassUntilNewsFor(client);
  EXPECT_TRUE(client.Ended());
}

TEST_F(ConnectionsTest, AnIdleOneGivesItsThreadToAnother) {
  HttpServerOptions options = Options();
  options.threads = 2;
  options.max_profiles = 1;
  Start(std::move(options));
  std::vector<TestClient> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(Connect());
    EXPECT_EQ(clients.back().Get("/healthz").status, 200) << i;
  }
}

TEST_F(ConnectionsTest, AHeadThatIsTooLongIsRefused) {
  Start();
  const std::string big(20'000, 'x');
  TestClient header = Connect();
  header.Ask("/healthz", "X-Big: " + big + "\r\n");
  EXPECT_EQ(header.Receive().status, 431);
  EXPECT_TRUE(header.Ended());
  TestClient target = Connect();
  target.Ask("/" + big);
  EXPECT_EQ(target.Receive().status, 431);
  TestClient many = Connect();
  std::string headers;
  for (int i = 0; i < 3000; ++i) headers += "a" + std::to_string(i) + ": b\r\n";
  many.Ask("/healthz", headers);
  EXPECT_EQ(many.Receive().status, 431);
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(ConnectionsTest, ABodyIsNeverTakenForTheNextRequest) {
  Start();
  for (const char* headers : {"Content-Length: 60\r\n", "Transfer-Encoding: chunked\r\n",
                              "Content-Length: nonsense\r\n", "Content-Length: 0, 60\r\n"}) {
    TestClient client = Connect();
    client.Ask("/healthz", headers);
    client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(client.Receive().status, 400) << headers;
    EXPECT_TRUE(client.Ended()) << headers;
  }
}

TEST_F(ConnectionsTest, HostileRequestsHarmNobodyElse) {
  Start();
  std::string ranges = "Range: bytes=";
  for (int i = 0; i < 1300; ++i) ranges += "0-1, ";
  const std::string endless_range = "Range: bytes=" + std::string(7000, '1') + "-\r\n";
  for (const std::string& bytes :
       {std::string("\0\0\0\0\r\n\r\n", 8), std::string("\x16\x03\x01\x02\r\n\r\n"),
        std::string("GET\r\n\r\n"), std::string("GET /healthz HTTP/9.9\r\n\r\n"),
        std::string("GET /%zz%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string("GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n"),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + ranges + "0-1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + endless_range + "\r\n",
        std::string("GET /healthz?") + std::string(4000, '&') + "=%%%25 HTTP/1.1\r\n\r\n"}) {
    TestClient client = Connect();
    client.Send(bytes);
    shutdown(client.socket(), SHUT_WR);
    client.Receive();
    EXPECT_EQ(Get("/healthz").status, 200) << bytes.substr(0, 80);
  }
}

TEST_F(ConnectionsTest, WhatFollowsAMalformedRequestIsNotRead) {
  Start();
  TestClient client = Connect();
  client.Send("GET /healthz HTTP/9.9\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 400);
  EXPECT_TRUE(client.Ended());
}

TEST_F(ConnectionsTest, ARangeIsIgnored) {
  Start();
  const Answer answer = Get("/healthz", "Range: bytes=0-0\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "ok\n");
}

TEST_F(ConnectionsTest, AClientThatTakesNothingIsLeft) {
  HttpServerOptions options = Options();
  options.threads = 5;
  options.max_profiles = 4;
  options.limits.head = hours(24);
  options.limits.answer = kLimit;
  agent_.profile.assign(size_t{16} << 20, 'x');  // more than the kernel takes for the client
  Start(std::move(options));
  std::vector<TestClient> deaf;
  for (int i = 0; i < 10; ++i) {
    deaf.push_back(Connect());
    deaf.back().Ask("/debug/pprof/profile");
  }
  TestClient client = Connect();
  client.Ask("/healthz");
  PassUntilNewsFor(client);
  EXPECT_EQ(client.Receive().status, 200);
}

// No limit ends them, for the clock stands still.
TEST_F(ConnectionsTest, AStopEndsThemAll) {
  Start();
  std::vector<TestClient> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Connect());
  EXPECT_EQ(clients[0].Get("/healthz").status, 200);
  clients[1].Send("GET /hea");
  const std::future<void> stopped = std::async(std::launch::async, [this] { server_.reset(); });
  EXPECT_EQ(stopped.wait_for(kTestPatience), std::future_status::ready);
  clock_.Advance(hours(24));  // in which all end, should the stop not have done it
  for (TestClient& client : clients) EXPECT_TRUE(client.Ended());
}

TEST_F(ConnectionsTest, TextIsCompressedForWhoTakesIt) {
  agent_.metrics = {
      {.name = "windows_total", .labels = {}, .value = 7, .help = std::string(2000, 'w')}};
  Start();
  const Answer answer = Get("/metrics", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(answer.Header("Content-Encoding"), "gzip");
  EXPECT_LT(answer.body.size(), 500U);
}

}  // namespace
}  // namespace pyrometer
