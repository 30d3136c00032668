// SPDX-License-Identifier: Apache-2.0
#include "agent/container_following.h"

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/privileges.h"
#include "metadata/cri_client.h"
#include "metadata/docker_client.h"
#include "metadata/first_source.h"
#include "metadata/kube_api_client.h"
#include "metadata/kubelet_client.h"
#include "metadata/late_source.h"

namespace pyrometer {
namespace {

constexpr std::string_view kListing = "listing containers";
constexpr std::string_view kNode = "reading the node's labels";
constexpr const char* kWithoutEffect = "has no effect with this kubernetes.mode";

// That no container runtime is here is news only to those who asked for one.
bool IsNews(const Error& error, KubernetesMode mode) {
  return mode != KubernetesMode::kAuto ||
         (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kUnsupported);
}

std::unique_ptr<ContainerSource> Cri(const KubernetesConfig& config, const Clock& clock) {
  CriClient::Options client;
  client.sockets = config.cri_socket.empty() ? KnownCriSockets() : std::vector{config.cri_socket};
  return std::make_unique<CriClient>(std::move(client), clock);
}

std::unique_ptr<ContainerSource> Docker(const KubernetesConfig& config) {
  return std::make_unique<DockerClient>(
      config.docker_socket.empty() ? KnownDockerSockets() : std::vector{config.docker_socket});
}

std::unique_ptr<ContainerSource> Kubelet(const KubernetesConfig& config) {
  const KubeletConfig& kubelet = config.kubelet;
  std::string url = kubelet.url;
  if (url.empty()) {
    url = "https://" + (config.node_name.empty() ? "localhost" : config.node_name) + ":10250";
  }
  while (url.ends_with('/')) url.pop_back();
  return std::make_unique<KubeletClient>(HttpEndpoint{.url = std::move(url),
                                                      .token_file = kubelet.token_file,
                                                      .ca_file = kubelet.ca_file,
                                                      .verify = !kubelet.insecure_skip_verify});
}

HttpEndpoint ApiEndpoint(const ApiServerConfig& config) {
  std::string url = config.url;
  while (url.ends_with('/')) url.pop_back();
  return {.url = std::move(url), .token_file = config.token_file, .ca_file = config.ca_file};
}

std::unique_ptr<ContainerSource> ApiServer(const KubernetesConfig& config, const Clock& clock) {
  return std::make_unique<KubeApiClient>(
      KubeApiClient::Options{.endpoint = ApiEndpoint(config.api), .node_name = config.node_name},
      clock);
}

// The API server comes last: a pod has it everywhere, but each agent's watch is a load on the
// cluster. Not the kubelet: most sign their certificates themselves, and a token is not for just
// anyone.
std::unique_ptr<ContainerSource> WhateverIsThere(const KubernetesConfig& config,
                                                 const Clock& clock) {
  std::vector<std::unique_ptr<ContainerSource>> sources;
  sources.push_back(Cri(config, clock));
  sources.push_back(Docker(config));
  const std::string& token = config.api.token_file;
  const bool has_token = token.empty() || ::access(token.c_str(), R_OK) == 0;
  if (!config.api.url.empty() && has_token) {
    sources.push_back(
        std::make_unique<LateSource>([config, &clock] { return ApiServer(config, clock); }));
  }
  return std::make_unique<FirstSource>(std::move(sources));
}

std::unique_ptr<ContainerSource> SourceOf(const KubernetesConfig& config, const Clock& clock) {
  switch (config.mode) {
    case KubernetesMode::kCri:
      return Cri(config, clock);
    case KubernetesMode::kKubelet:
      return Kubelet(config);
    case KubernetesMode::kApi:
      return ApiServer(config, clock);
    case KubernetesMode::kDocker:
      return Docker(config);
    case KubernetesMode::kAuto:
    case KubernetesMode::kOff:
      break;
  }
  return WhateverIsThere(config, clock);
}

}  // namespace

std::unique_ptr<ContainerDirectory> FollowContainers(const KubernetesConfig& config,
                                                     const Clock& clock, Log& log) {
  for (const std::string& key : config.without_effect) log.Warn(key, kWithoutEffect);
  if (config.mode == KubernetesMode::kOff) return nullptr;
  ContainerDirectory::Options options;
  // What these tell of a container comes some seconds after its start.
  const bool is_slow = config.mode == KubernetesMode::kKubelet ||
                       config.mode == KubernetesMode::kApi ||
                       (config.mode == KubernetesMode::kAuto && !config.api.url.empty());
  if (is_slow) options.most_misses = 10;
  options.told = [&log, mode = config.mode](const Error* error) {
    if (error == nullptr) {
      log.Tell(kListing, "works");
    } else if (IsNews(*error, mode)) {
      log.Warn(kListing,
               error->message() + "; until then profiles have container ids, no names of pods");
    }
  };
  return WithoutPrivileges([&] {
    return std::make_unique<ContainerDirectory>(std::move(options), SourceOf(config, clock), clock);
  });
}

std::unique_ptr<NodeLabels> FollowNode(const KubernetesConfig& config, const Clock& clock,
                                       Log& log) {
  if (config.node_labels.empty()) return nullptr;
  NodeLabels::Options options{.endpoint = ApiEndpoint(config.api),
                              .node_name = config.node_name,
                              .wanted = config.node_labels};
  options.told = [&log](const Error* error) {
    if (error == nullptr) {
      log.Tell(kNode, "works");
    } else {
      log.Warn(kNode, error->message() + "; until then profiles lack node_labels");
    }
  };
  return WithoutPrivileges([&] { return std::make_unique<NodeLabels>(std::move(options), clock); });
}

bool IsSameSource(KubernetesConfig one, const KubernetesConfig& other) {
  // The kubelet's name is the node's, where it has no other; the API server is asked for a node's.
  one.without_effect = other.without_effect;
  const bool by_name = !other.api.url.empty() ||
                       (other.mode == KubernetesMode::kKubelet && other.kubelet.url.empty());
  if (!by_name) one.node_name = other.node_name;
  one.pod_labels = other.pod_labels;
  return one == other;
}

}  // namespace pyrometer
