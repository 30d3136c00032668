// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "metadata/container_metadata.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// What manages a pod, as far as the pod itself tells.
struct Workload {
  std::string kind;  // "Deployment", "StatefulSet"; "": it does not tell
  std::string name;

  bool operator==(const Workload&) const = default;
};

// By what the controllers write on their pods: a Deployment's are named NAME-HASH-xxxxx after their
// label pod-template-hash, a StatefulSet's NAME-N, which their label
// statefulset.kubernetes.io/pod-name says again. Names that Kubernetes had to cut are not taken
// apart.
Workload WorkloadOf(const PodMetadata& pod);

// The service that runs in `container`: the first that there is of the pod's annotations
// pyrometer.io/service-name and pyroscope.io/service_name, its label app.kubernetes.io/name, the
// workload's name, the container's name; "" if there is none.
std::string ServiceOfContainer(const ContainerMetadata& container);

// The labels of what runs in `container`, those of them that have a value, in printable characters:
//
//   container, namespace, pod      by their names in Kubernetes
//   service_name                   ServiceOfContainer(), else `otherwise`
//   workload_kind, workload_name   see WorkloadOf()
Labels LabelsOfContainer(const ContainerMetadata& container, std::string_view otherwise);

}  // namespace pyrometer
