// SPDX-License-Identifier: Apache-2.0
#include "metadata/kubelet_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "local_server.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;

constexpr const char* kPods =
    R"({"items": [{"metadata": {"name": "p", "namespace": "n", "uid": "u"},
  "status": {"containerStatuses": [{"name": "c", "containerID": "containerd://id"}]}}]})";

TEST(KubeletClient, SendsTheTokenAsItIsNow) {
  LocalServer local;
  std::string wanted = "Bearer one";
  local.server.Get("/pods", [&](const httplib::Request& request, httplib::Response& response) {
    if (request.get_header_value("Authorization") != wanted) response.status = 401;
    response.set_content(kPods, "application/json");
  });
  const std::string token = testing::TempDir() + "/kubelet_token";
  std::ofstream(token) << "one\n";
  KubeletClient client({.url = local.Start(), .token_file = token});
  const auto list = client.List();
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->at(0).pod->name, "p");
  wanted = "Bearer two";
  const auto refused = client.List();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kIo) << "which may pass";
  EXPECT_THAT(refused.error().message(), HasSubstr("401"));
  std::ofstream(token) << "two\n";
  EXPECT_TRUE(client.List());
}

TEST(KubeletClient, SaysWhatIsWrong) {
  LocalServer local;
  int status = 200;
  std::string body;
  local.server.Get("/pods", [&](const httplib::Request&, httplib::Response& response) {
    response.status = status;
    response.set_content(body, "application/json");
  });
  const std::string url = local.Start();
  const auto failure = [&](int with_status, std::string with_body) {
    status = with_status;
    body = std::move(with_body);
    const auto list = KubeletClient({.url = url}).List();
    return list ? ErrorCode::kInternal : list.error().code();
  };
  EXPECT_EQ(failure(403, "no"), ErrorCode::kPermission);
  EXPECT_EQ(failure(500, "no"), ErrorCode::kIo);
  EXPECT_EQ(failure(302, ""), ErrorCode::kIo);
  EXPECT_EQ(failure(200, "{"), ErrorCode::kMalformed);
  EXPECT_EQ(failure(200, std::string((size_t{16} << 20) + 1, ' ')), ErrorCode::kExhausted);
  EXPECT_EQ(KubeletClient({.url = url, .token_file = "/nonexistent"}).List().error().code(),
            ErrorCode::kNotFound);
}

TEST(KubeletClient, AsksNobodyAfterCancel) {
  KubeletClient client({.url = "http://127.0.0.1:1"});
  client.Cancel();
  const auto list = client.List();
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message(), HasSubstr("shutting down"));
}

}  // namespace
}  // namespace pyrometer
