// SPDX-License-Identifier: Apache-2.0
// The clients of the API server and the kubelet against a server that is as strict as these.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "metadata/container_directory.h"
#include "metadata/kube_api_client.h"
#include "metadata/kubelet_client.h"
#include "pod_texts.h"
#include "strict_https_server.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/base/test_certificates.h"

namespace pyrometer {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;
using Step = StrictHttpsServer::Step;

class HttpsSourcesTest : public testing::Test {
 protected:
  HttpsSourcesTest() {
    SetToken("first");
    MakeAuthority(tree_, "ours");
    MakeCertificate(tree_, "ours", "server", "IP:127.0.0.1");
  }
  ~HttpsSourcesTest() override {
    EXPECT_THAT(server_ != nullptr ? server_->mistakes() : std::vector<std::string>(), IsEmpty());
  }

  void Serve(std::vector<Step> steps) {
    server_ = std::make_unique<StrictHttpsServer>(
        tree_.Path("server.crt"), tree_.Path("server.key"), std::move(steps), clock_);
  }
  void SetToken(const std::string& token) { tree_.File("token", token + "\n"); }

  HttpEndpoint Endpoint() const {
    return {.url = server_->url(),
            .token_file = tree_.Path("token"),
            .ca_file = tree_.Path("ours.crt")};
  }
  KubeApiClient::Options Api() const {
    return {.endpoint = Endpoint(), .node_name = "n1", .pause = 5ms, .longest_pause = 20ms};
  }

  // The ids, or the error.
  static std::string TextOf(ContainerSource& source) {
    const auto list = source.List();
    if (!list) return list.error().message();
    std::string text;
    for (const ContainerMetadata& container : *list) text += container.id + " ";
    return text;
  }
  // The same once it is this. Time passes until then, which a source notices that is asked.
  std::string Await(ContainerSource& source, const std::string& wanted) {
    std::string text;
    EXPECT_TRUE(Eventually([&] {
      clock_.Advance(step_);
      text = TextOf(source);
      return text == wanted;
    }));
    return text;
  }
  // What the server was asked once it is so much, or ends with this; likewise.
  template <typename Condition>
  std::string AwaitThat(KubeApiClient& client, const Condition& holds) {
    EXPECT_TRUE(Eventually([&] {
      if (holds()) return true;
      clock_.Advance(step_);
      (void)client.List();
      return false;
    }));
    return server_->Text();
  }
  std::string AwaitAsked(KubeApiClient& client, size_t count) {
    return AwaitThat(client, [&] { return server_->asked().size() >= count; });
  }
  std::string AwaitLast(KubeApiClient& client, const std::string& what) {
    return AwaitThat(client, [&] { return server_->Text().ends_with(", " + what); });
  }

  std::chrono::milliseconds step_ = 5ms;  // by which time goes on at each look
  FakeClock clock_;
  TemporaryTree tree_;
  std::unique_ptr<StrictHttpsServer> server_;
};

TEST_F(HttpsSourcesTest, ListsFiveThousandPodsOnceAndWatchesThem) {
  constexpr int kPods = 5000;
  constexpr int kPage = 500;
  std::vector<Step> steps;
  for (int first = 0; first < kPods; first += kPage) {
    std::string items;
    for (int i = first; i < first + kPage; ++i) {
      items += (items.empty() ? "" : ",") + PodText(fmt::format("p{}", i), "1");
    }
    const int next = first + kPage;
    steps.push_back({.body = ListText(items, next < kPods ? "" : "9",
                                      next < kPods ? fmt::format("t{}", next / kPage) : "")});
  }
  Serve(steps);
  KubeApiClient client(Api(), clock_);
  EXPECT_THAT(AwaitAsked(client, 11),
              "list 0, list continue t1, list continue t2, list continue t3, list continue t4, "
              "list continue t5, list continue t6, list continue t7, list continue t8, "
              "list continue t9, watch 9");
  const auto list = client.List();
  ASSERT_TRUE(list.has_value());
  EXPECT_THAT(*list, SizeIs(kPods));
}

TEST_F(HttpsSourcesTest, GoesOnWithTheTokenThatIsThereByThen) {
  Serve({{.body = ListText(PodText("a", "1"), "1")},
         {.body = BookmarkText("4")},
         {.body = EventText("ADDED", PodText("b", "5"))}});
  server_->SetToken("second");
  KubeApiClient client(Api(), clock_);
  AwaitAsked(client, 2);
  EXPECT_THAT(server_->asked().front().what, "401");
  SetToken("second");
  EXPECT_EQ(Await(client, "a b "), "a b ");
  EXPECT_THAT(AwaitLast(client, "watch 5"), EndsWith("401, list 0, watch 1, watch 4, watch 5"));
}

TEST_F(HttpsSourcesTest, WaitsAsLongAsTheServerWants) {
  Serve({{.body = ListText("", "1")},
         {.status = 429, .body = "slow down", .retry_after = "600"},
         {.body = EventText("ADDED", PodText("a", "2"))}});
  step_ = 500ms;  // so that all 600 s pass in no time, and are yet long against the looks meanwhile
  KubeApiClient client(Api(), clock_);
  EXPECT_EQ(AwaitAsked(client, 4), "list 0, watch 1, watch 1, watch 2");
  const auto asked = server_->asked();
  EXPECT_GE(Between(asked[1].when, asked[2].when), 600s);
}

TEST_F(HttpsSourcesTest, TakesWhatTricklesAndGoesOnAfterACut) {
  Serve({{.body = ListText("", "1"), .pause = 1ms, .piece = 7},
         {.body = EventText("ADDED", PodText("a", "2")) + R"({"type": "MODI)",
          .pause = 1ms,
          .piece = 11,
          .cut = true},
         {.status = 500, .body = "broken"},
         {.status = 410, .body = "too old"},
         {.body = ListText(PodText("a", "6") + "," + PodText("b", "6"), "6")},
         {.body = EventText("DELETED", PodText("a", "7"))}});
  KubeApiClient client(Api(), clock_);
  EXPECT_EQ(AwaitAsked(client, 7), "list 0, watch 1, watch 2, watch 2, list , watch 6, watch 7");
  EXPECT_EQ(Await(client, "b "), "b ");
}

TEST_F(HttpsSourcesTest, LearnsOfAContainerWhoseIdComesSecondsLater) {
  const std::string late = EventText("MODIFIED", PodText("a", "3"));
  const std::string early = EventText("ADDED", PodText("a", "2", false));
  Serve({{.body = ListText("", "1")},
         {.body = early + std::string(20, '\n') + late, .piece = early.size(), .held = true}});
  auto source = std::make_unique<KubeApiClient>(Api(), clock_);
  KubeApiClient& client = *source;
  ContainerDirectory containers({.pause = 50ms, .longest_pause = 100ms}, std::move(source), clock_);
  using State = ContainerDirectory::Answer::State;
  AwaitThat(client, [&] { return containers.Find("a").state == State::kUnknown; });
  AwaitThat(client, [&] { return server_->IsHolding(); });
  server_->Release();
  AwaitThat(client, [&] { return containers.Find("a").state == State::kKnown; });
  EXPECT_EQ(containers.Find("a").metadata->pod->name, "a");
  EXPECT_THAT(AwaitAsked(client, 3), "list 0, watch 1, watch 3") << "no polling meanwhile";
}

TEST_F(HttpsSourcesTest, TrustsNobodyElse) {
  MakeAuthority(tree_, "theirs");
  Serve({{.body = ListText(PodText("a", "1"), "1")}});
  HttpEndpoint endpoint = Endpoint();
  endpoint.ca_file = tree_.Path("theirs.crt");
  KubeletClient stranger(endpoint);
  EXPECT_THAT(stranger.List().error().message(), HasSubstr("certificate"));
  MakeCertificate(tree_, "ours", "elsewhere", "DNS:elsewhere.test");
  StrictHttpsServer elsewhere(tree_.Path("elsewhere.crt"), tree_.Path("elsewhere.key"), {}, clock_);
  endpoint = Endpoint();
  endpoint.url = elsewhere.url();
  KubeletClient misled(endpoint);
  EXPECT_THAT(misled.List().error().message(), HasSubstr("127.0.0.1"));
  EXPECT_THAT(elsewhere.asked(), IsEmpty()) << "nobody gets the token who is not the host";
  EXPECT_THAT(server_->asked(), IsEmpty());
}

TEST_F(HttpsSourcesTest, TrustsTheAuthorityThatIsThereByThen) {
  MakeAuthority(tree_, "theirs");
  Serve({{.body = ListText(PodText("a", "1"), "1")}});
  HttpEndpoint endpoint = Endpoint();
  endpoint.ca_file = tree_.Path("ca");
  std::filesystem::copy_file(tree_.Path("theirs.crt"), endpoint.ca_file);
  KubeletClient client(endpoint);
  EXPECT_FALSE(client.List().has_value());
  std::filesystem::copy_file(tree_.Path("ours.crt"), endpoint.ca_file,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Await(client, "a "), "a ");
}

TEST_F(HttpsSourcesTest, AsksTheKubeletWithTheTokenThatIsThereByThen) {
  Serve({{.status = 500, .body = "broken"}, {.body = ListText(PodText("a", "1"), "")}});
  server_->SetToken("second");
  KubeletClient client(Endpoint());
  const auto refused = client.List();
  EXPECT_THAT(refused.error().message(), HasSubstr("401"));
  EXPECT_EQ(refused.error().code(), ErrorCode::kIo) << "which may pass";
  SetToken("second");
  EXPECT_THAT(client.List().error().message(), HasSubstr("500"));
  EXPECT_EQ(Await(client, "a "), "a ");
  EXPECT_EQ(server_->Text(), "401, pods, pods");
}

TEST_F(HttpsSourcesTest, DoesNotWaitForWhoNeverAnswers) {
  Serve({});
  const HttpGetter getter(Endpoint());
  const Result<HttpResponse> response = getter.Get("/pods", {.timeout = 200ms});
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), ErrorCode::kIo);
}

// An answer that comes one byte at a time is no answer either.
TEST_F(HttpsSourcesTest, DoesNotWaitForWhoTricklesForEver) {
  Serve({{.body = std::string(100'000, ' '), .pause = 10ms, .piece = 1}});
  const HttpGetter getter(Endpoint());
  EXPECT_FALSE(getter.Get("/pods", {.timeout = 300ms}).has_value());
}

}  // namespace
}  // namespace pyrometer
