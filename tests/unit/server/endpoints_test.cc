// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/server/server_fixture.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class EndpointsTest : public ServerTest {};

TEST_F(EndpointsTest, HealthIsOkOrSaysWhyNot) {
  Start();
  const Answer answer = Get("/healthz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "ok\n");
  server_.reset();
  agent_.not_healthy = {"no window for 60 s", "out of descriptors"};
  Start();
  const Answer ill = Get("/healthz");
  EXPECT_EQ(ill.status, 503);
  EXPECT_EQ(ill.body, "no window for 60 s\nout of descriptors\n");
  EXPECT_EQ(ill.Header("Content-Type"), "text/plain; charset=utf-8");
}

TEST_F(EndpointsTest, ReadinessIsApartFromHealth) {
  agent_.not_ready = {"the first window has not ended"};
  Start();
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/readyz").body, "the first window has not ended\n");
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(EndpointsTest, MetricsAreInPrometheusFormat) {
  agent_.metrics = {{.name = "windows_total", .labels = {}, .value = 7, .help = "windows"}};
  Start();
  const Answer answer = Get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.Header("Content-Type"), StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(answer.body, HasSubstr("\npyrometer_windows_total 7\n"));
}

TEST_F(EndpointsTest, AnUnknownPathIsPlainText404) {
  Start();
  for (const char* path : {"/nothing", "/metrics/", "/../etc/passwd", "//metrics", "/debug/"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_THAT(answer.Header("Content-Type"), StartsWith("text/plain")) << path;
  }
}

TEST_F(EndpointsTest, OnlyGetAndHeadAreAllowed) {
  Start();
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    TestClient client = Connect();
    client.Ask("/metrics", "Content-Length: 5\r\n", method);
    client.Send("hello");
    const Answer answer = client.Receive();
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.Header("Allow"), "GET, HEAD") << method;
    EXPECT_TRUE(client.Ended()) << method;
  }
}

TEST_F(EndpointsTest, HeadHasTheHeadersAndNoBody) {
  Start();
  TestClient client = Connect();
  client.Ask("/healthz", "", "HEAD");
  const Answer answer = client.Receive(false);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Content-Length"), "3");
  EXPECT_EQ(client.Get("/healthz").body, "ok\n");  // nothing lay between
}

TEST_F(EndpointsTest, EveryAnswerHasSecurityHeaders) {
  Start();
  for (const char* path : {"/healthz", "/metrics", "/nothing"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(answer.Header("X-Frame-Options"), "SAMEORIGIN") << path;
    EXPECT_EQ(answer.Header("Cache-Control"), "no-store") << path;
    EXPECT_EQ(answer.Header("Referrer-Policy"), "no-referrer") << path;
  }
}

TEST_F(EndpointsTest, AForeignHostNameIsRefusedOnLoopback) {
  Start();
  for (const char* host : {"evil.example", "evil.example:4041", "localhost.evil.example"}) {
    TestClient client = Connect();
    client.Send(std::string("GET /metrics HTTP/1.1\r\nHost: ") + host + "\r\n\r\n");
    EXPECT_EQ(client.Receive().status, 403) << host;
  }
  for (const char* host :
       {"localhost:4041", "127.0.0.1:4041", "[::1]:4041", "LOCALHOST", "10.0.0.1"}) {
    TestClient client = Connect();
    client.Send(std::string("GET /metrics HTTP/1.1\r\nHost: ") + host + "\r\n\r\n");
    EXPECT_EQ(client.Receive().status, 200) << host;
  }
}

class TokenTest : public ServerTest {
 protected:
  void SetUp() override {
    WriteToken("s3cret\n");
    Start({.clock = clock_, .bearer_token_file = path_});
  }
  void WriteToken(const std::string& token) { tree_.File("token", token); }

  TemporaryTree tree_;
  const std::string path_ = tree_.Path("token");
};

TEST_F(TokenTest, AllButHealthNeedsTheToken) {
  for (const char* path : {"/metrics", "/debug/pprof/profile", "/debug/pprof/", "/nothing"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.status, 401) << path;
    EXPECT_EQ(answer.headers.count("WWW-Authenticate"), 2U) << path;
  }
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 200);
}

TEST_F(TokenTest, TheTokenOpensAsBearerOrAsAPassword) {
  EXPECT_EQ(Get("/metrics", "Authorization: Bearer s3cret\r\n").status, 200);
  EXPECT_EQ(Get("/metrics", "Authorization: bearer  s3cret\r\n").status, 200);
  EXPECT_EQ(Get("/metrics", "Authorization: Basic YW55OnMzY3JldA==\r\n").status, 200);
}

TEST_F(TokenTest, AnythingElseDoesNot) {
  for (const char* value :
       {"Bearer s3cre", "Bearer s3crets", "Bearer ", "Bearer", "s3cret", "Basic s3cret",
        "Basic czNjcmV0", "Basic =", "Basic ====", "Digest s3cret"}) {
    EXPECT_EQ(Get("/metrics", std::string("Authorization: ") + value + "\r\n").status, 401)
        << value;
  }
}

TEST_F(TokenTest, ANewTokenCountsAtOnceAndALostOneLocks) {
  WriteToken("another");
  EXPECT_EQ(Get("/metrics", "Authorization: Bearer s3cret\r\n").status, 401);
  EXPECT_EQ(Get("/metrics", "Authorization: Bearer another\r\n").status, 200);
  EXPECT_THAT(server_->Troubles(), testing::IsEmpty());
  WriteToken("");
  EXPECT_EQ(Get("/metrics", "Authorization: Bearer another\r\n").status, 401);
  EXPECT_EQ(Get("/metrics", "Authorization: Bearer \r\n").status, 401);
  EXPECT_THAT(server_->Troubles(), testing::ElementsAre(HasSubstr("is empty")));
}

TEST(HttpServer, DoesNotStartWithoutTheTokenItWants) {
  const FakeClock clock;
  FakeAgent agent;
  const auto server = HttpServer::Start(
      agent, {.clock = clock, .listen = "127.0.0.1:0", .bearer_token_file = "/nonexistent/token"});
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message(), HasSubstr("/nonexistent/token"));
}

}  // namespace
}  // namespace pyrometer
