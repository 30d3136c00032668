// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "metadata/container_metadata.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// A name of a label made of any text: everything but letters, digits and '_' is '_'.
std::string LabelNameOf(std::string_view text);

// What is known of `container`, for the rules of relabel_configs only: by name, each name once,
// those that have a value. The names are those of Prometheus' kubernetes_sd_configs with role pod:
//
//   __meta_kubernetes_namespace
//   __meta_kubernetes_pod_name, _pod_uid, _pod_controller_kind, _pod_controller_name
//   __meta_kubernetes_pod_label_NAME, _pod_labelpresent_NAME ("true"),
//   __meta_kubernetes_pod_annotation_NAME, _pod_annotationpresent_NAME ("true")
//   __meta_kubernetes_pod_container_name, _pod_container_image, _pod_container_id
//
// of a container without a pod those of docker_sd_configs:
//
//   __meta_docker_container_id, _container_name, _container_image (ours), _container_label_NAME
//
// NAME is LabelNameOf() it; of labels that become one so, the first by name counts. The controller
// is WorkloadOf() the pod, so a Deployment where Prometheus has its ReplicaSet. The id is the bare
// one, without the runtime's name.
Labels MetaLabelsOfContainer(const ContainerMetadata& container);

}  // namespace pyrometer
