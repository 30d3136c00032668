// SPDX-License-Identifier: Apache-2.0
#include "metadata/docker_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "metadata/bounded_json.h"

namespace pyrometer {
namespace {

using nlohmann::json;

constexpr const char* kRequest = "/containers/json?all=1";

std::string TakeOut(std::map<std::string, std::string>& texts, const char* key) {
  const auto node = texts.extract(key);
  return node.empty() ? "" : node.mapped();
}

// "/web", and "/other/alias" of Docker's old links, which come in any order.
std::string NameOf(const json& container) {
  const json& names = At(container, "Names");
  if (!names.is_array()) return "";
  for (const json& value : names) {
    if (!value.is_string()) continue;
    std::string name = value.get<std::string>();
    if (name.starts_with('/')) name.erase(0, 1);  // podman writes none
    if (!name.empty() && name.size() <= kLongestJsonText && name.find('/') == std::string::npos) {
      return name;
    }
  }
  return "";
}

ContainerMetadata ContainerOf(const json& container) {
  std::map<std::string, std::string> labels = TextsAt(container, "Labels");
  ContainerMetadata read{.id = TextAt(container, "Id"), .image = TextAt(container, "Image")};
  PodMetadata pod{.name = TakeOut(labels, "io.kubernetes.pod.name"),
                  .name_space = TakeOut(labels, "io.kubernetes.pod.namespace"),
                  .uid = TakeOut(labels, "io.kubernetes.pod.uid")};
  const std::string in_pod = TakeOut(labels, "io.kubernetes.container.name");
  if (pod.name.empty()) {
    read.name = NameOf(container);
    pod = {};
  } else if (in_pod != "POD") {  // cri-dockerd's for the container that holds the namespaces
    read.name = in_pod;
  }
  read.labels = std::move(labels);
  read.pod = std::make_shared<const PodMetadata>(std::move(pod));
  return read;
}

}  // namespace

Result<std::vector<ContainerMetadata>> ReadDockerContainers(std::string_view text) {
  const json list = ParseJson(text);
  if (!list.is_array()) {
    return Fail(ErrorCode::kMalformed, "the answer is no list of containers");
  }
  std::vector<ContainerMetadata> containers;
  for (const json& container : list) {
    ContainerMetadata read = ContainerOf(container);
    if (!read.id.empty()) containers.push_back(std::move(read));
  }
  return containers;
}

DockerClient::Server::Server(const std::string& path)
    : socket(path), http({.url = "http://localhost", .unix_socket = path}) {}

DockerClient::DockerClient(const std::vector<std::string>& sockets) {
  for (const std::string& socket : sockets) servers_.push_back(std::make_unique<Server>(socket));
}

Result<std::vector<ContainerMetadata>> DockerClient::List() {
  std::vector<std::string> absent;
  for (const auto& server : servers_) {
    Result<HttpResponse> response = server->http.Get(kRequest, {});
    if (!response && response.error().code() == ErrorCode::kNotFound) {
      absent.push_back(server->socket);
      continue;
    }
    if (!response) return std::move(response).error().With(server->socket);
    if (response->status != HttpResponse::kOk)
      return ErrorOf(*response, server->socket + ": " + kRequest);
    Result<std::vector<ContainerMetadata>> list = ReadDockerContainers(response->body);
    if (!list) return std::move(list).error().With(server->socket);
    return list;
  }
  return Fail(ErrorCode::kNotFound, "neither Docker nor podman listens at {}",
              fmt::join(absent, ", "));
}

void DockerClient::Cancel() {
  for (const auto& server : servers_) server->http.Cancel();
}

std::vector<std::string> KnownDockerSockets() {
  return {"/var/run/docker.sock", "/run/podman/podman.sock"};
}

}  // namespace pyrometer
