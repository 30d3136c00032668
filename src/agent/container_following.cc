// SPDX-License-Identifier: Apache-2.0
#include "agent/container_following.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/privileges.h"
#include "metadata/cri_client.h"

namespace pyrometer {
namespace {

constexpr std::string_view kListing = "listing containers";

// That no runtime of Kubernetes is here is news only to those who asked for one.
bool IsNews(const Error& error, KubernetesMode mode) {
  return mode == KubernetesMode::kCri ||
         (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kUnsupported);
}

}  // namespace

std::unique_ptr<ContainerDirectory> FollowContainers(const KubernetesConfig& config, Log& log) {
  if (config.mode == KubernetesMode::kOff) return nullptr;
  ContainerDirectory::Options options;
  options.told = [&log, mode = config.mode](const Error* error) {
    if (error == nullptr) {
      log.Tell(kListing, "works");
    } else if (IsNews(*error, mode)) {
      log.Warn(kListing,
               error->message() + "; until then profiles have container ids, no names of pods");
    }
  };
  CriClient::Options client;
  client.sockets = config.cri_socket.empty() ? KnownCriSockets() : std::vector{config.cri_socket};
  return WithoutPrivileges([&] {
    return std::make_unique<ContainerDirectory>(std::move(options),
                                                std::make_unique<CriClient>(std::move(client)));
  });
}

}  // namespace pyrometer
