// SPDX-License-Identifier: Apache-2.0
#include "metadata/pod_json.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

const std::string kWeb =
    R"({"metadata": {"name": "web-7c5b-x2x4z", "namespace": "shop", "uid": "u1",
  "resourceVersion": "7", "labels": {"app": "web", "bad": 3, "spec": "kept"},
  "annotations": {"a": "b"}, "managedFields": [{"manager": "kubectl"}],
  "ownerReferences": [{"kind": "Other", "name": "o"},
                      {"kind": "ReplicaSet", "name": "web-7c5b", "controller": true}]},
  "spec": {"nodeName": "n1"},
  "status": {"containerStatuses": [{"name": "main", "image": "i:1", "containerID": "containerd://c1",
                                    "restartCount": 2}, {"name": "not yet"}],
             "initContainerStatuses": [{"name": "init", "containerID": "cri-o://c2"}],
             "ephemeralContainerStatuses": [{"name": "debug", "containerID": "docker://c3"}]}})";

std::string ListOf(const std::string& items) {
  return R"({"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": "more"}, "items": [)" +
         items + "]}";
}

std::vector<std::string> IdsOf(const std::vector<ContainerMetadata>& containers) {
  std::vector<std::string> ids;
  for (const ContainerMetadata& container : containers) ids.push_back(container.id);
  return ids;
}

TEST(ReadPodList, TakesWhatNamesAContainer) {
  const auto page = ReadPodList(ListOf(kWeb));
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->next_page, "more");
  ASSERT_EQ(IdsOf(page->containers), (std::vector<std::string>{"c1", "c2", "c3"}));
  const ContainerMetadata& main = page->containers[0];
  EXPECT_EQ(main.name, "main");
  EXPECT_EQ(main.image, "i:1");
  EXPECT_EQ(main.attempt, 2U);
  EXPECT_EQ(*main.pod, (PodMetadata{.name = "web-7c5b-x2x4z",
                                    .name_space = "shop",
                                    .uid = "u1",
                                    .labels = {{"app", "web"}, {"spec", "kept"}},
                                    .annotations = {{"a", "b"}},
                                    .owner = {"ReplicaSet", "web-7c5b"}}));
  EXPECT_EQ(main.pod, page->containers[2].pod);
}

TEST(ReadPodList, LosesNoPodByABrokenOne) {
  for (const char* broken :
       {"null", "3", "[]", "{}", R"({"metadata": "x"})", R"({"metadata": {"name": 3, "uid": []}})",
        R"({"metadata": {"name": "a", "uid": "b", "labels": [1], "ownerReferences": {"kind": 1}},
            "status": {"containerStatuses": {"containerID": "x://y"}}})",
        R"({"metadata": {"name": "a", "uid": "b", "ownerReferences": [1, {"controller": "yes"}]},
            "status": {"containerStatuses": [1, {"containerID": 5}, {"containerID": "x"}]}})"}) {
    const auto page = ReadPodList(ListOf(broken + std::string(",") + kWeb));
    ASSERT_TRUE(page) << broken;
    EXPECT_EQ(IdsOf(page->containers).size(), 3U) << broken;
  }
}

TEST(ReadPodList, RefusesWhatIsNoList) {
  const std::string whole = ListOf(kWeb);
  EXPECT_FALSE(ReadPodList("[1]"));
  EXPECT_FALSE(ReadPodList(R"({"items": 3})"));
  EXPECT_FALSE(ReadPodList("\xff\xfe"));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ReadPodList(whole.substr(0, size))) << size;
  }
  EXPECT_TRUE(ReadPodList(R"({"items": null})"));
}

TEST(ReadPodList, LooksNotIntoTheDeep) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const auto page = ReadPodList(ListOf(R"({"metadata": {"labels": )" + deep + "}}," + kWeb));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->containers.size(), 3U);
}

TEST(ReadPodList, LeavesOutLongTexts) {
  std::string pod = kWeb;
  pod.replace(pod.find(R"("app": "web")"), 12, R"("app": ")" + std::string(3000, 'x') + '"');
  const auto page = ReadPodList(ListOf(pod));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->containers.at(0).pod->labels.count("app"), 0U);
}

TEST(ReadPodEvent, TellsWhatHappened) {
  using Kind = PodEvent::Kind;
  const auto of = [](const std::string& type, const std::string& object) {
    return R"({"type": ")" + type + R"(", "object": )" + object + "}";
  };
  for (const auto& [text, kind] : std::vector<std::pair<std::string, Kind>>{
           {of("ADDED", kWeb), Kind::kChanged},
           {of("MODIFIED", kWeb), Kind::kChanged},
           {of("DELETED", kWeb), Kind::kDeleted},
           {of("BOOKMARK", R"({"metadata": {"resourceVersion": "7"}})"), Kind::kBookmark},
           {of("ERROR", R"({"code": 410, "message": "too old"})"), Kind::kGone},
           {of("ERROR", R"({"code": 500})"), Kind::kFailed}}) {
    const auto event = ReadPodEvent(text);
    ASSERT_TRUE(event) << text;
    EXPECT_EQ(event->kind, kind) << text;
    if (kind == Kind::kChanged) {
      EXPECT_EQ(IdsOf(event->containers).size(), 3U);
      EXPECT_EQ(event->pod_uid, "u1");
      EXPECT_EQ(event->containers[0].pod->labels.count("spec"), 1U);
    }
    if (kind == Kind::kBookmark) {
      EXPECT_EQ(event->resource_version, "7");
    }
  }
  for (const char* text : {"", "{", "3", R"({"type": "RENAMED"})", R"({"type": 1})"}) {
    EXPECT_FALSE(ReadPodEvent(text)) << text;
  }
}

}  // namespace
}  // namespace pyrometer
