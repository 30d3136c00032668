// SPDX-License-Identifier: Apache-2.0
#include "export/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <thread>

#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/export/raw_server.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<HttpClient> MakeClient(const std::string& url, ClientOptions options = {}) {
  Result<std::unique_ptr<HttpClient>> client = HttpClient::Make(url, std::move(options));
  EXPECT_TRUE(client.has_value()) << client.error().message();
  return *std::move(client);
}

// What a sink would make of one post.
Receipt Deliver(HttpClient& client, std::string_view body = "body") {
  const auto answer = client.Post({.path = "/path", .body = body});
  return answer ? ReceiptOf(*answer) : answer.error();
}

TEST(HttpClient, SendsTheBodyUnderThePathOfItsUrl) {
  RawServer server({.answer = HttpText(200)});
  const auto client = MakeClient(server.Url() + "/prefix/");
  const auto answer = client->Post(
      {.path = "/path?a=b", .body = std::string_view("a\0b", 3), .headers = {"Content-Type: x/y"}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  ASSERT_EQ(server.Requests().size(), 1);
  const std::string request = server.Requests()[0];
  EXPECT_TRUE(request.starts_with("POST /prefix/path?a=b HTTP/1.1\r\n")) << request;
  EXPECT_THAT(request, HasSubstr("Content-Type: x/y\r\n"));
  EXPECT_THAT(request, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(request, HasSubstr("User-Agent: pyrometer/"));
  EXPECT_THAT(request, Not(HasSubstr("Expect:")));
  EXPECT_TRUE(request.ends_with(std::string("\r\n\r\na\0b", 7)));
}

TEST(HttpClient, KeepsTheConnectionForTheNextRequest) {
  RawServer server({.answer = HttpText(200), .closes = false});
  const auto client = MakeClient(server.Url());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Deliver(*client).outcome, Outcome::kDelivered);
  EXPECT_EQ(server.Connections(), 1);
}

// What becomes of the second of two requests, which a server reads from a kept connection and then
// closes it; or `goes`, as one that is stopped after it has stored what it read.
class KeptConnectionThatIsClosed : public testing::TestWithParam<bool> {};

TEST_P(KeptConnectionThatIsClosed, LeavesOneRequestInDoubt) {
  const bool goes = GetParam();
  RawServer server({.answer = HttpText(200), .closes = false, .answers_at_most = 1, .goes = goes});
  const auto client = MakeClient(server.Url());
  EXPECT_EQ(Deliver(*client).outcome, Outcome::kDelivered);
  const Receipt second = Deliver(*client);
  EXPECT_EQ(second.outcome, Outcome::kMaybeArrived);
  EXPECT_EQ(second.reason, "connection_lost");
  EXPECT_EQ(server.Requests().size(), 2);
  // Of a request that finds nobody nothing has arrived, whatever became of the one before.
  EXPECT_EQ(Deliver(*client).outcome, goes ? Outcome::kNotArrived : Outcome::kMaybeArrived);
}

INSTANTIATE_TEST_SUITE_P(HttpClient, KeptConnectionThatIsClosed, testing::Bool(),
                         [](const auto& test) { return test.param ? "AndGoes" : "AndListens"; });

struct StatusCase {
  int status;
  Outcome outcome;
};

class HttpStatus : public testing::TestWithParam<StatusCase> {};

TEST_P(HttpStatus, HasItsOutcomeAndTheServersWords) {
  const int status = GetParam().status;
  RawServer server({.answer = HttpText(status, "", "no, \x1b[31mnever\n")});
  const auto client = MakeClient(server.Url());
  const Receipt receipt = Deliver(*client);
  EXPECT_EQ(receipt.outcome, GetParam().outcome);
  if (receipt.outcome == Outcome::kDelivered) return;
  EXPECT_EQ(receipt.reason, "http_" + std::to_string(status));
  EXPECT_THAT(receipt.message, HasSubstr("no, \xEF\xBF\xBD[31mnever"));
}

INSTANTIATE_TEST_SUITE_P(
    All, HttpStatus,
    testing::Values(StatusCase{200, Outcome::kDelivered}, StatusCase{202, Outcome::kDelivered},
                    StatusCase{302, Outcome::kRejected}, StatusCase{400, Outcome::kRejected},
                    StatusCase{401, Outcome::kNotArrived}, StatusCase{403, Outcome::kNotArrived},
                    StatusCase{404, Outcome::kRejected}, StatusCase{408, Outcome::kNotArrived},
                    StatusCase{413, Outcome::kRejected}, StatusCase{422, Outcome::kRejected},
                    StatusCase{429, Outcome::kNotArrived}, StatusCase{500, Outcome::kMaybeArrived},
                    StatusCase{501, Outcome::kRejected}, StatusCase{502, Outcome::kMaybeArrived},
                    StatusCase{503, Outcome::kNotArrived}, StatusCase{504, Outcome::kMaybeArrived}),
    [](const auto& status) { return std::to_string(status.param.status); });

TEST(HttpClient, FollowsNoRedirection) {
  RawServer other({.answer = HttpText(200)});
  RawServer server({.answer = HttpText(307, "Location: " + other.Url() + "/\r\n")});
  const auto client = MakeClient(server.Url());
  EXPECT_EQ(Deliver(*client).outcome, Outcome::kRejected);
  EXPECT_EQ(other.Connections(), 0);
}

TEST(HttpClient, HonoursRetryAfterInSecondsAndAsADate) {
  RawServer in_seconds({.answer = HttpText(429, "Retry-After: 7\r\n")});
  EXPECT_EQ(Deliver(*MakeClient(in_seconds.Url())).retry_after, seconds(7));
  const std::time_t then = std::time(nullptr) + 100;
  std::array<char, 64> date{};
  std::strftime(date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&then));
  RawServer at({.answer = HttpText(503, std::string("Retry-After: ") + date.data() + "\r\n")});
  const Receipt receipt = Deliver(*MakeClient(at.Url()));
  const std::time_t now = std::time(nullptr);
  ASSERT_TRUE(receipt.retry_after);
  EXPECT_LE(*receipt.retry_after, seconds(100));
  EXPECT_GE(*receipt.retry_after, seconds(then - now)) << "which is nearly all of it";
}

TEST(HttpClient, BoundsRetryAfterAndIgnoresWhatIsNone) {
  RawServer forever({.answer = HttpText(429, "Retry-After: 99999999999\r\n")});
  EXPECT_EQ(Deliver(*MakeClient(forever.Url())).retry_after, std::chrono::hours(1));
  RawServer soon({.answer = HttpText(429, "Retry-After: soon\r\n")});
  EXPECT_EQ(Deliver(*MakeClient(soon.Url())).retry_after, std::nullopt);
}

TEST(HttpClient, AsksOnceAMinuteWithCredentialsThatAreRefused) {
  RawServer server({.answer = HttpText(401)});
  EXPECT_EQ(Deliver(*MakeClient(server.Url())).retry_after, seconds(60));
}

TEST(HttpClient, KnowsThatNothingArrivesWhereNobodyListens) {
  const ReservedPort port;
  const auto client = MakeClient("http://" + port.Address());
  const Receipt receipt = Deliver(*client);
  EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
  EXPECT_EQ(receipt.reason, "connect");
  EXPECT_THAT(receipt.message, HasSubstr("127.0.0.1"));
}

TEST(HttpClient, KnowsThatNothingArrivesAtAnUnknownHost) {
  const auto client = MakeClient("http://no-such-host.invalid:1");
  const Receipt receipt = Deliver(*client);
  EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
  EXPECT_EQ(receipt.reason, "resolve");
}

TEST(HttpClient, KnowsNotWhatArrivedAtAServerThatHangs) {
  RawServer server({.answer = "", .closes = false});
  // The time may be over before the request is sent: then there is more of it.
  Receipt receipt;
  for (milliseconds timeout{200}; timeout < kTestPatience; timeout *= 2) {
    receipt = Deliver(*MakeClient(server.Url(), {.timeout = timeout}));
    if (receipt.outcome != Outcome::kNotArrived) break;
  }
  EXPECT_EQ(receipt.outcome, Outcome::kMaybeArrived);
  EXPECT_EQ(receipt.reason, "timeout");
}

TEST(HttpClient, KnowsThatHalfARequestDoesNotCount) {
  // The time may be over before there is a connection: then there is more of it.
  bool is_connected = false;
  Receipt receipt;
  for (milliseconds timeout{300}; !is_connected && timeout < kTestPatience; timeout *= 2) {
    RawServer server({.answer = "", .reads = false, .closes = false});
    const auto client = MakeClient(server.Url(), {.timeout = timeout});
    receipt = Deliver(*client, std::string(size_t{64} << 20, 'x'));
    is_connected = server.Connections() == 1;
  }
  EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
  EXPECT_EQ(receipt.reason, "timeout");
}

TEST(HttpClient, KnowsNotWhatArrivedWhenTheAnswerBreaksOff) {
  for (const char* answer : {"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"}) {
    RawServer server({.answer = answer});
    const Receipt receipt = Deliver(*MakeClient(server.Url()));
    EXPECT_EQ(receipt.outcome, Outcome::kMaybeArrived) << answer;
    EXPECT_EQ(receipt.reason, "connection_lost") << answer;
  }
  RawServer garbage({.answer = "220 mail.example.com ESMTP\r\n"});
  const Receipt receipt = Deliver(*MakeClient(garbage.Url()));
  EXPECT_EQ(receipt.outcome, Outcome::kMaybeArrived);
  EXPECT_EQ(receipt.reason, "bad_answer");
}

TEST(HttpClient, TakesAFailureForOneThoughItsWordsBreakOff) {
  RawServer server({.answer = "HTTP/1.1 400 X\r\nContent-Length: 100\r\n\r\nbad lab"});
  const Receipt receipt = Deliver(*MakeClient(server.Url()));
  EXPECT_EQ(receipt.outcome, Outcome::kRejected);
  EXPECT_THAT(receipt.message, HasSubstr("bad lab"));
}

TEST(HttpClient, ReadsNoMoreThanItNeedsOfALongAnswer) {
  RawServer server({.answer = HttpText(400, "", std::string(size_t{8} << 20, 'w'))});
  const auto client = MakeClient(server.Url());
  const auto answer = client->Post({.path = "/", .body = "b"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body.size(), size_t{64} << 10);
  EXPECT_LE(ReceiptOf(*answer).message.size(), 600);
}

TEST(HttpClient, EndsWhatIsUnderWayWhenCancelled) {
  RawServer server({.answer = "", .closes = false});
  const auto client = MakeClient(server.Url(), {.timeout = seconds(60)});
  auto receipt = std::async(std::launch::async, [&] { return Deliver(*client); });
  server.WaitForRequests(1);
  client->Cancel();
  ASSERT_EQ(receipt.wait_for(kTestPatience), std::future_status::ready);
  EXPECT_EQ(receipt.get().reason, "cancelled");
  EXPECT_EQ(Deliver(*client).outcome, Outcome::kNotArrived);
  EXPECT_EQ(server.Requests().size(), 1);
}

TEST(HttpClient, LetsGoOfItsConnectionsWhenCancelled) {
  RawServer server({.answer = HttpText(200), .closes = false});
  const auto client = MakeClient(server.Url());
  EXPECT_EQ(Deliver(*client).outcome, Outcome::kDelivered);
  EXPECT_EQ(ConnectionsTo(server.port()), 1);
  client->Cancel();
  EXPECT_EQ(ConnectionsTo(server.port()), 0);
}

TEST(HttpClient, ShowsWhoItIs) {
  RawServer server({.answer = HttpText(200), .closes = false});
  const auto basic = MakeClient(
      server.Url(), {.headers = {{"X-Scope-OrgID", "blue"}, {"X-Empty", ""}},
                     .basic_auth = BasicAuth{.username = "aladdin", .password = "opensesame"}});
  EXPECT_EQ(Deliver(*basic).outcome, Outcome::kDelivered);
  EXPECT_THAT(server.Requests().at(0),
              HasSubstr("Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l\r\n"));
  EXPECT_THAT(server.Requests().at(0), HasSubstr("X-Scope-OrgID: blue\r\n"));
  EXPECT_THAT(server.Requests().at(0), HasSubstr("X-Empty:\r\n"));
}

TEST(HttpClient, ReadsTheTokenAgainForEachRequest) {
  const TemporaryTree tree;
  const std::string file = tree.Path("token");
  RawServer server({.answer = HttpText(200), .closes = false});
  const auto client = MakeClient(server.Url(), {.bearer_token_file = file});
  const Receipt without = Deliver(*client);
  EXPECT_EQ(without.outcome, Outcome::kNotArrived);
  EXPECT_EQ(without.reason, "credentials");
  EXPECT_THAT(without.message, HasSubstr(file));
  for (const char* token : {"first\n", "second\n"}) {
    std::ofstream(file) << token;
    EXPECT_EQ(Deliver(*client).outcome, Outcome::kDelivered);
  }
  EXPECT_THAT(server.Requests().at(0), HasSubstr("Authorization: Bearer first\r\n"));
  EXPECT_THAT(server.Requests().at(1), HasSubstr("Authorization: Bearer second\r\n"));
  std::ofstream(file) << "two\r\nX-Forged: yes";
  EXPECT_EQ(Deliver(*client).reason, "credentials");
}

TEST(HttpClient, GoesThroughTheProxyOfTheEnvironment) {
  RawServer proxy({.answer = HttpText(200)});
  ASSERT_EQ(::setenv("http_proxy", proxy.Url().c_str(), 1), 0);
  const Receipt receipt = Deliver(*MakeClient("http://profiles.example:4040"));
  ::unsetenv("http_proxy");
  EXPECT_EQ(receipt.outcome, Outcome::kDelivered);
  EXPECT_TRUE(proxy.Requests().at(0).starts_with("POST http://profiles.example:4040/path "));
}

TEST(HttpClient, RefusesOptionsThatCannotWork) {
  const auto error = [](const std::string& url, ClientOptions options = {}) {
    const auto client = HttpClient::Make(url, std::move(options));
    return client ? "" : client.error().message();
  };
  EXPECT_THAT(error("ftp://host"), HasSubstr("http://"));
  EXPECT_THAT(error("host:4040"), Not(testing::IsEmpty()));
  EXPECT_THAT(error("http://"), Not(testing::IsEmpty()));
  EXPECT_THAT(error("http://user:secret@host"), Not(HasSubstr("secret")));
  EXPECT_THAT(error("http://user:secret@host:99999"), Not(HasSubstr("secret")));
  EXPECT_THAT(error("ftp://user:secret@host"), Not(HasSubstr("secret")));
  EXPECT_THAT(error("http://host/?a=b"), HasSubstr("path only"));
  EXPECT_THAT(error("http://host", {.headers = {{"X", "a\r\nY: b"}}}), HasSubstr("header X"));
  EXPECT_THAT(error("http://host", {.headers = {{"X: y", "a"}}}), HasSubstr("header"));
  EXPECT_THAT(
      error("http://host", {.basic_auth = BasicAuth{.username = "u"}, .bearer_token_file = "/f"}),
      HasSubstr("exclude"));
  EXPECT_THAT(error("https://host", {.tls = {.cert_file = "/c"}}), HasSubstr("key_file"));
}

}  // namespace
}  // namespace pyrometer
