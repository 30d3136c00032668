// SPDX-License-Identifier: Apache-2.0
#include "record/container_runtime.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metadata/cri_client.h"
#include "metadata/docker_client.h"
#include "metadata/joined_source.h"

namespace pyrometer {
namespace {

constexpr const char* kCriEndpoint = "CONTAINER_RUNTIME_ENDPOINT";
constexpr const char* kDockerEndpoint = "DOCKER_HOST";

std::vector<std::string> SocketIn(const Environment& environment, const char* variable,
                                  std::vector<std::string> otherwise) {
  constexpr std::string_view kUnix = "unix://";
  std::string path = environment(variable).value_or("");
  if (path.starts_with(kUnix)) path.erase(0, kUnix.size());
  if (!path.starts_with('/')) return otherwise;
  return {std::move(path)};
}

}  // namespace

std::unique_ptr<ContainerSource> LocalContainerRuntime(const Environment& environment) {
  CriClient::Options cri;
  cri.sockets = SocketIn(environment, kCriEndpoint, KnownCriSockets());
  std::vector<std::unique_ptr<ContainerSource>> sources;
  sources.push_back(std::make_unique<CriClient>(std::move(cri)));
  sources.push_back(
      std::make_unique<DockerClient>(SocketIn(environment, kDockerEndpoint, KnownDockerSockets())));
  return std::make_unique<JoinedSource>(std::move(sources));
}

std::string IgnoredEndpoints(const Environment& environment) {
  std::vector<std::string_view> ignored;
  for (const char* variable : {kCriEndpoint, kDockerEndpoint}) {
    const bool is_set = !environment(variable).value_or("").empty();
    if (is_set && SocketIn(environment, variable, {}).empty()) ignored.emplace_back(variable);
  }
  if (ignored.empty()) return "";
  return fmt::format("{} {} ignored: only a socket of this machine can be asked, unix://PATH",
                     fmt::join(ignored, ", "), ignored.size() == 1 ? "is" : "are");
}

}  // namespace pyrometer
