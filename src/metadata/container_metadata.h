// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace pyrometer {

// What Kubernetes calls the pod of a container.
struct PodMetadata {
  std::string name{};
  std::string name_space{};
  std::string uid{};
  // As the pod's author and Kubernetes' controllers wrote them, by key.
  std::map<std::string, std::string> labels{};
  std::map<std::string, std::string> annotations{};

  bool operator==(const PodMetadata&) const = default;
};

// What a container runtime knows of a container.
struct ContainerMetadata {
  std::string id{};    // as in the names of its cgroups
  std::string name{};  // in its pod; "" for the container that only holds a pod's namespaces
  std::string image{};
  uint32_t attempt = 0;                      // how often it was restarted
  std::shared_ptr<const PodMetadata> pod{};  // shared by its containers; never null

  // Pods by what they are called.
  bool operator==(const ContainerMetadata& other) const {
    return id == other.id && name == other.name && image == other.image &&
           attempt == other.attempt && *pod == *other.pod;
  }
};

}  // namespace pyrometer
