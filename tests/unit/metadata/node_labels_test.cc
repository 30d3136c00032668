// SPDX-License-Identifier: Apache-2.0
#include "metadata/node_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "strict_https_server.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/base/test_certificates.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using namespace std::chrono_literals;

constexpr const char* kNode = R"({"kind": "Node", "metadata": {"name": "n1", "labels": {
    "topology.kubernetes.io/zone": "eu-1a", "topology.kubernetes.io/region": "eu", "empty": ""}},
    "status": {"images": [{"names": ["x"]}]}})";

TEST(ReadNodeLabels, TakesThoseThatAreWanted) {
  EXPECT_THAT(*ReadNodeLabels(kNode, {"topology.kubernetes.io/zone", "empty", "absent"}),
              ElementsAre(Pair("topology_kubernetes_io_zone", "eu-1a")));
  EXPECT_THAT(*ReadNodeLabels(R"({"kind": "Node"})", {"zone"}), IsEmpty());
  EXPECT_THAT(*ReadNodeLabels(R"({"kind": "Node", "metadata": {"labels": {"zone": 7}}})", {"zone"}),
              IsEmpty());
}

TEST(ReadNodeLabels, RefusesWhatIsNoNode) {
  for (const char* text : {"", "{", "[]", "{}", R"({"kind": "Status"})", "null"}) {
    EXPECT_EQ(ReadNodeLabels(text, {"zone"}).error().code(), ErrorCode::kMalformed) << text;
  }
}

TEST(NodeLabels, AsksUntilThereIsAnAnswer) {
  FakeClock clock;
  TemporaryTree tree;
  tree.File("token", "first\n");
  MakeAuthority(tree, "ours");
  MakeCertificate(tree, "ours", "server", "IP:127.0.0.1");
  StrictHttpsServer server(tree.Path("server.crt"), tree.Path("server.key"),
                           {{.status = 403, .body = "Forbidden"},
                            {.body = "{"},
                            {.body = kNode, .cut = true},
                            {.body = kNode}},
                           clock);
  server.SetToken("first");
  std::vector<std::string> told;
  {
    NodeLabels labels({.endpoint = {.url = server.url(),
                                    .token_file = tree.Path("token"),
                                    .ca_file = tree.Path("ours.crt")},
                       .node_name = "n1",
                       .wanted = {"topology.kubernetes.io/region"},
                       .told =
                           [&](const Error* error) {
                             told.push_back(error == nullptr ? "works" : error->message());
                           }},
                      clock);
    ASSERT_TRUE(Eventually([&] {
      clock.Advance(100ms);
      return labels.Get().has_value();
    }));
    EXPECT_THAT(*labels.Get(), ElementsAre(Pair("topology_kubernetes_io_region", "eu")));
  }
  EXPECT_THAT(told, ElementsAre(HasSubstr("needs 'get' on nodes"), HasSubstr("no node"), testing::_,
                                "works"));
  EXPECT_EQ(server.Text(), "node, node, node, node");
  EXPECT_THAT(server.mistakes(), IsEmpty());
}

TEST(NodeLabels, EndsWhileNobodyAnswers) {
  const Clock clock;
  TemporaryTree tree;
  tree.File("token", "first\n");
  MakeAuthority(tree, "ours");
  MakeCertificate(tree, "ours", "server", "IP:127.0.0.1");
  StrictHttpsServer server(tree.Path("server.crt"), tree.Path("server.key"), {}, clock);
  server.SetToken("first");
  const NodeLabels labels({.endpoint = {.url = server.url(),
                                        .token_file = tree.Path("token"),
                                        .ca_file = tree.Path("ours.crt")},
                           .node_name = "n1",
                           .wanted = {"zone"}},
                          clock);
  ASSERT_TRUE(Eventually([&] { return server.asked().size() == 1; }));
  EXPECT_EQ(labels.Get(), std::nullopt);
}

}  // namespace
}  // namespace pyrometer
