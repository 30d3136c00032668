// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/container_source.h"
#include "metadata/http_getter.h"

namespace pyrometer {

// Where Docker and podman (root's) listen.
std::vector<std::string> KnownDockerSockets();

// Asks Docker, or podman by the same API, for its containers, over a socket in the file system.
// Thread-safe.
class DockerClient final : public ContainerSource {
 public:
  // Tried in this order until one is there; at least one.
  explicit DockerClient(const std::vector<std::string>& sockets);

  // All containers; a pod's, which cri-dockerd made, with its pod. Errors as in ContainerSource;
  // kExhausted for more than 16 MiB.
  Result<std::vector<ContainerMetadata>> List() override;
  void Cancel() override;

 private:
  struct Server {
    explicit Server(const std::string& path);
    std::string socket;
    HttpGetter http;
  };
  std::vector<std::unique_ptr<Server>> servers_;
};

// What /containers/json answers. Errors: kMalformed.
Result<std::vector<ContainerMetadata>> ReadDockerContainers(std::string_view json);

}  // namespace pyrometer
