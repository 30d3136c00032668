// SPDX-License-Identifier: Apache-2.0
#include "metadata/docker_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "local_server.h"
#include "metadata/container_labels.h"

namespace pyrometer {
namespace {

constexpr const char* kContainers = R"([
  {"Id": "c1", "Names": ["/other/alias", "/shop-web-1"], "Image": "nginx:1",
   "Labels": {"com.docker.compose.service": "web"}},
  {"Id": "c2", "Names": ["plain"], "Image": "busybox", "Labels": null},
  {"Id": "c3", "Names": ["/k8s_main_p_n_u_0"],
   "Labels": {"io.kubernetes.pod.name": "p", "io.kubernetes.pod.namespace": "n",
              "io.kubernetes.pod.uid": "u", "io.kubernetes.container.name": "main"}},
  {"Id": "c4", "Labels": {"io.kubernetes.pod.name": "p", "io.kubernetes.container.name": "POD"}},
  {"Id": 5}, 6, null, {"Names": 7}])";

TEST(ReadDockerContainers, NamesContainersWithAndWithoutAPod) {
  const auto list = ReadDockerContainers(kContainers);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 4U);
  EXPECT_EQ(LabelsOfContainer(list->at(0), "x"),
            (Labels{{"container", "shop-web-1"}, {"service_name", "web"}}));
  EXPECT_EQ(list->at(0).image, "nginx:1");
  EXPECT_EQ(LabelsOfContainer(list->at(1), "x"),
            (Labels{{"container", "plain"}, {"service_name", "plain"}}));
  EXPECT_EQ(
      LabelsOfContainer(list->at(2), "x"),
      (Labels{{"container", "main"}, {"namespace", "n"}, {"pod", "p"}, {"service_name", "main"}}));
  EXPECT_EQ(list->at(3).name, "");
  for (const char* text : {"", "{}", "[", "[{]"}) EXPECT_FALSE(ReadDockerContainers(text)) << text;
}

TEST(DockerClient, AsksTheFirstSocketThatIsThere) {
  const std::string socket = testing::TempDir() + "/docker_client_test.sock";
  ::unlink(socket.c_str());
  LocalServer local;
  local.server.Get("/containers/json",
                   [](const httplib::Request& request, httplib::Response& response) {
                     if (request.get_param_value("all") != "1") response.status = 400;
                     response.set_content(kContainers, "application/json");
                   });
  local.StartAt(socket);
  const auto list = DockerClient({"/nonexistent/docker.sock", socket}).List();
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->size(), 4U);
  EXPECT_EQ(DockerClient({"/nonexistent/docker.sock"}).List().error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace pyrometer
