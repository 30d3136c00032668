// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "metadata/container_source.h"

namespace pyrometer {

// Where the runtimes of Kubernetes nodes listen: containerd, k3s, RKE2, CRI-O, cri-dockerd,
// MicroK8s.
std::vector<std::string> KnownCriSockets();

// Asks a container runtime for its containers, by Kubernetes' Container Runtime Interface, v1
// (proto/cri.proto): gRPC without TLS over a socket in the file system. Each List() makes a
// connection of its own, since there are minutes or days between two. Thread-safe.
class CriClient final : public ContainerSource {
 public:
  struct Options {
    // Tried in this order until one answers; at least one.
    std::vector<std::string> sockets;
    // For the calls to one runtime, together. An answer that is too long may take all of it.
    std::chrono::nanoseconds timeout{std::chrono::seconds(5)};
    // One answer; runtimes send no more than this by default.
    size_t longest_answer = size_t{16} << 20;
  };

  // `clock`, by which the timeout goes from one call to the next, outlives it.
  CriClient(Options options, const Clock& clock);
  ~CriClient() override;

  // Containers and, with an empty name, the sandboxes of pods, which have a cgroup as well. Of
  // annotations and labels, those that are too long for any profile's labels (2,048 bytes) are left
  // out. Errors as in ContainerSource; kExhausted for a longer answer.
  Result<std::vector<ContainerMetadata>> List() override;
  void Cancel() override;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace pyrometer
