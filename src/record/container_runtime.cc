// SPDX-License-Identifier: Apache-2.0
#include "record/container_runtime.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metadata/cri_client.h"
#include "metadata/docker_client.h"
#include "metadata/first_source.h"

namespace pyrometer {
namespace {

std::vector<std::string> SocketIn(const Environment& environment, const std::string& variable,
                                  std::vector<std::string> otherwise) {
  constexpr std::string_view kUnix = "unix://";
  std::string path = environment(variable).value_or("");
  if (path.starts_with(kUnix)) path.erase(0, kUnix.size());
  if (!path.starts_with('/')) return otherwise;
  return {std::move(path)};
}

}  // namespace

std::unique_ptr<ContainerSource> LocalContainerRuntime(const Environment& environment,
                                                       const Clock& clock) {
  CriClient::Options cri;
  cri.sockets = SocketIn(environment, "CONTAINER_RUNTIME_ENDPOINT", KnownCriSockets());
  std::vector<std::unique_ptr<ContainerSource>> sources;
  sources.push_back(std::make_unique<CriClient>(std::move(cri), clock));
  sources.push_back(
      std::make_unique<DockerClient>(SocketIn(environment, "DOCKER_HOST", KnownDockerSockets())));
  return std::make_unique<FirstSource>(std::move(sources));
}

}  // namespace pyrometer
