// SPDX-License-Identifier: Apache-2.0
#include "metadata/container_meta_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace pyrometer {
namespace {

using testing::Contains;
using testing::Pair;

ContainerMetadata In(PodMetadata pod) {
  return {.id = "c1",
          .name = "app",
          .image = "registry/app:1",
          .pod = std::make_shared<const PodMetadata>(std::move(pod))};
}

TEST(MetaLabelsOfContainer, SayAllThatIsKnownByName) {
  EXPECT_EQ(
      MetaLabelsOfContainer(In({.name = "db-0",
                                .name_space = "shop",
                                .uid = "u1",
                                .labels = {{"statefulset.kubernetes.io/pod-name", "db-0"}},
                                .annotations = {{"empty", ""}}})),
      (Labels{{"__meta_kubernetes_namespace", "shop"},
              {"__meta_kubernetes_pod_annotationpresent_empty", "true"},
              {"__meta_kubernetes_pod_container_id", "c1"},
              {"__meta_kubernetes_pod_container_image", "registry/app:1"},
              {"__meta_kubernetes_pod_container_name", "app"},
              {"__meta_kubernetes_pod_controller_kind", "StatefulSet"},
              {"__meta_kubernetes_pod_controller_name", "db"},
              {"__meta_kubernetes_pod_label_statefulset_kubernetes_io_pod_name", "db-0"},
              {"__meta_kubernetes_pod_labelpresent_statefulset_kubernetes_io_pod_name", "true"},
              {"__meta_kubernetes_pod_name", "db-0"},
              {"__meta_kubernetes_pod_uid", "u1"}}));
}

TEST(MetaLabelsOfContainer, AreDockersWithoutAPod) {
  ContainerMetadata container = In({});
  container.labels = {{"com.docker.compose.service", "web"}};
  EXPECT_EQ(MetaLabelsOfContainer(container),
            (Labels{{"__meta_docker_container_id", "c1"},
                    {"__meta_docker_container_image", "registry/app:1"},
                    {"__meta_docker_container_label_com_docker_compose_service", "web"},
                    {"__meta_docker_container_name", "app"}}));
}

TEST(MetaLabelsOfContainer, HaveTheFirstOfNamesThatBecomeTheSame) {
  const Labels labels =
      MetaLabelsOfContainer(In({.name = "web", .labels = {{"a.b", "1"}, {"a/b", "2"}}}));
  EXPECT_THAT(labels, Contains(Pair("__meta_kubernetes_pod_label_a_b", "1")));
}

TEST(MetaLabelsOfContainer, ArePrintable) {
  const Labels labels =
      MetaLabelsOfContainer(In({.name = "a\x1b", .annotations = {{"\xff\xc3", "\xff"}}}));
  EXPECT_THAT(labels, Contains(Pair("__meta_kubernetes_pod_name", "a\uFFFD")));
  EXPECT_THAT(labels, Contains(Pair("__meta_kubernetes_pod_annotation___", "\uFFFD")));
}

}  // namespace
}  // namespace pyrometer
