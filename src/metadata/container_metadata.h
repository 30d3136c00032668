// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace pyrometer {

// What manages a pod: "Deployment", "web". "": not known.
struct Workload {
  std::string kind{};
  std::string name{};

  bool operator==(const Workload&) const = default;
};

// What Kubernetes calls the pod of a container.
struct PodMetadata {
  std::string name{};
  std::string name_space{};
  std::string uid{};
  // As the pod's author and Kubernetes' controllers wrote them, by key.
  std::map<std::string, std::string> labels{};
  std::map<std::string, std::string> annotations{};
  Workload owner{};  // its controlling owner, where the source tells: a ReplicaSet, a Job, ...

  bool operator==(const PodMetadata&) const = default;
};

// What a container runtime knows of a container.
struct ContainerMetadata {
  std::string id{};  // as in the names of its cgroups
  // In its pod, or of a container without a pod; "" for the one that only holds a pod's namespaces.
  std::string name{};
  std::string image{};
  uint32_t attempt = 0;                         // how often it was restarted
  std::map<std::string, std::string> labels{};  // its own, of Docker and podman
  // Shared by its containers. Never null: a container without a pod has one without a name.
  std::shared_ptr<const PodMetadata> pod{};

  // Pods by what they are called.
  bool operator==(const ContainerMetadata& other) const {
    return id == other.id && name == other.name && image == other.image &&
           attempt == other.attempt && labels == other.labels && *pod == *other.pod;
  }
};

}  // namespace pyrometer
