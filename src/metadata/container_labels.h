// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "metadata/container_metadata.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// By the pod's controlling owner, where it is known. A ReplicaSet whose name ends in the pod's
// pod-template-hash is of a Deployment. A Job named NAME-MINUTES, with the minutes since 1970 that
// a CronJob's controller appends (getJobName in Kubernetes' pkg/controller/cronjob), from 2010 to
// 2099, is of the CronJob NAME. A static pod's owner, its Node, is no workload. Others are what
// they are.
//
// Else by what the controllers write on their pods: a Deployment's are named NAME-HASH-xxxxx after
// their label pod-template-hash, a StatefulSet's NAME-N, which their label
// statefulset.kubernetes.io/pod-name says again. Names that Kubernetes had to cut are not taken
// apart.
Workload WorkloadOf(const PodMetadata& pod);

// The service as who deployed `container` named it for profiles: the first that there is of the
// pod's annotations pyrometer.io/service-name and pyroscope.io/service_name and the container's own
// label pyrometer.io/service-name; "" if there is none.
std::string AnnotatedService(const ContainerMetadata& container);

// The service that runs in `container`: the first that there is of AnnotatedService(), the pod's
// label app.kubernetes.io/name, the workload's name, the service in Docker's compose, the
// container's name; "" if there is none.
std::string ServiceOfContainer(const ContainerMetadata& container);

// The labels of what runs in `container`, those of them that have a value, in printable characters:
//
//   container, namespace, pod      by their names in Kubernetes
//   service_name                   ServiceOfContainer(), else `otherwise`
//   workload_kind, workload_name   see WorkloadOf()
Labels LabelsOfContainer(const ContainerMetadata& container, std::string_view otherwise);

}  // namespace pyrometer
