// SPDX-License-Identifier: Apache-2.0
#include "metadata/container_labels.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

using Texts = std::map<std::string, std::string>;

struct Case {
  std::string pod;
  Texts labels;
  Workload workload;
};

TEST(WorkloadOf, TellsWhatThePodsNameAndLabelsTell) {
  const Texts hash = {{"pod-template-hash", "7c5b8d9f6"}};
  const auto named = [](const char* pod) {
    return Texts{{"statefulset.kubernetes.io/pod-name", pod}};
  };
  for (const auto& [pod, labels, workload] : std::vector<Case>{
           {"web-7c5b8d9f6-x2x4z", hash, {"Deployment", "web"}},
           {"a-b-c-7c5b8d9f6-x2x4z", hash, {"Deployment", "a-b-c"}},
           {"web-7c5b8d9f6-x2x4z", {}, {}},
           {"web-7c5b8d9f6-x2x4", hash, {}},
           {"web-7c5b8d9f6", hash, {}},
           {"7c5b8d9f6-x2x4z", hash, {}},
           {"-7c5b8d9f6-x2x4z", hash, {}},
           {"web-7c5b8d9f-x2x4z", hash, {}},
           {"web7c5b8d9f6-x2x4z", hash, {}},
           {"web-x2x4z", {{"pod-template-hash", ""}}, {}},
           {"db-0", named("db-0"), {"StatefulSet", "db"}},
           {"my-db-12", named("my-db-12"), {"StatefulSet", "my-db"}},
           {"db-0", named("db-1"), {}},
           {"db-0", {}, {}},
           {"db-x", named("db-x"), {}},
           {"db-", named("db-"), {}},
           {"-0", named("-0"), {}},
           {"0", named("0"), {}},
           {"", hash, {}},
       }) {
    const Workload found = WorkloadOf({.name = pod, .labels = labels});
    EXPECT_EQ(found, workload) << pod << ": " << found.kind << " " << found.name;
  }
}

ContainerMetadata Container(PodMetadata pod) {
  return {.id = "c1", .name = "app", .pod = std::make_shared<const PodMetadata>(std::move(pod))};
}

std::string ServiceOf(const ContainerMetadata& container) {
  for (const auto& [name, value] : LabelsOfContainer(container, "nginx")) {
    if (name == "service_name") return value;
  }
  return "";
}

TEST(LabelsOfContainer, NamesAllThatIsKnownInOrder) {
  const ContainerMetadata container =
      Container({.name = "web-7c5b8d9f6-x2x4z",
                 .name_space = "shop",
                 .uid = "u",
                 .labels = {{"pod-template-hash", "7c5b8d9f6"}, {"other", "x"}}});
  EXPECT_EQ(LabelsOfContainer(container, "nginx"), (Labels{{"container", "app"},
                                                           {"namespace", "shop"},
                                                           {"pod", "web-7c5b8d9f6-x2x4z"},
                                                           {"service_name", "web"},
                                                           {"workload_kind", "Deployment"},
                                                           {"workload_name", "web"}}));
}

// Each of them hides all after it.
TEST(LabelsOfContainer, ChoosesTheServiceByPrecedence) {
  PodMetadata pod{
      .name = "web-7c5b8d9f6-x2x4z",
      .name_space = "shop",
      .labels = {{"app.kubernetes.io/name", "label"}, {"pod-template-hash", "7c5b8d9f6"}},
      .annotations = {{"pyrometer.io/service-name", "ours"},
                      {"pyroscope.io/service_name", "theirs"}}};
  EXPECT_EQ(ServiceOf(Container(pod)), "ours");
  pod.annotations["pyrometer.io/service-name"] = "";
  EXPECT_EQ(ServiceOf(Container(pod)), "theirs");
  pod.annotations.clear();
  EXPECT_EQ(ServiceOf(Container(pod)), "label");
  pod.labels.erase("app.kubernetes.io/name");
  EXPECT_EQ(ServiceOf(Container(pod)), "web");
  pod.labels.clear();
  EXPECT_EQ(ServiceOf(Container(pod)), "app");
  ContainerMetadata sandbox = Container(pod);
  sandbox.name = "";
  EXPECT_EQ(ServiceOf(sandbox), "nginx");
  EXPECT_EQ(LabelsOfContainer(sandbox, "pause").front().first, "namespace");
}

TEST(LabelsOfContainer, MakesValuesPrintable) {
  const ContainerMetadata container = Container({.name = "a\x1b\xff", .name_space = "shop"});
  const Labels labels = LabelsOfContainer(container, "x");
  EXPECT_EQ(labels[2].second, "a\uFFFD\uFFFD");
}

TEST(WorkloadOf, IsByThePodsOwnerWhereItIsKnown) {
  for (const auto& [owner, workload] : std::vector<std::pair<Workload, Workload>>{
           {{"ReplicaSet", "web-7c5b"}, {"Deployment", "web"}},
           {{"ReplicaSet", "a-b-7c5b"}, {"Deployment", "a-b"}},
           {{"ReplicaSet", "web-7c5c"}, {"ReplicaSet", "web-7c5c"}},
           {{"ReplicaSet", "-7c5b"}, {"ReplicaSet", "-7c5b"}},
           {{"Job", "backup-29380320"}, {"CronJob", "backup"}},
           {{"Job", "backup-12345678"}, {"Job", "backup-12345678"}},
           {{"Job", "backup-2938032"}, {"Job", "backup-2938032"}},
           {{"Job", "backup-2938032x"}, {"Job", "backup-2938032x"}},
           {{"Job", "-29380320"}, {"Job", "-29380320"}},
           {{"DaemonSet", "agent"}, {"DaemonSet", "agent"}},
           {{"StatefulSet", "db"}, {"StatefulSet", "db"}},
           {{"Rollout", "web"}, {"Rollout", "web"}},
           {{"Node", "n1"}, {}}}) {
    const PodMetadata pod{.name = "x", .labels = {{"pod-template-hash", "7c5b"}}, .owner = owner};
    EXPECT_EQ(WorkloadOf(pod), workload) << owner.kind << ' ' << owner.name;
  }
}

}  // namespace
}  // namespace pyrometer
