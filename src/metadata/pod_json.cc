// SPDX-License-Identifier: Apache-2.0
#include "metadata/pod_json.h"

#include <memory>
#include <utility>

#include "base/printable.h"
#include "metadata/bounded_json.h"

namespace pyrometer {
namespace {

using nlohmann::json;

constexpr size_t kLongestMessage = 300;
constexpr int kGone = 410;
constexpr int kDepthInList = 2;   // {"items": [{
constexpr int kDepthInEvent = 1;  // {"object": {

// Two parts of a pod are most of it and of no use here.
template <int kPodDepth>
bool IsWanted(int depth, std::string_view key) {
  return !(depth == kPodDepth + 1 && key == "spec") &&
         !(depth == kPodDepth + 2 && key == "managedFields");
}

Workload OwnerOf(const json& metadata) {
  const json& owners = At(metadata, "ownerReferences");
  if (!owners.is_array()) return {};
  for (const json& owner : owners) {
    const json& controls = At(owner, "controller");
    if (!controls.is_boolean() || !controls.get<bool>()) continue;
    return {.kind = TextAt(owner, "kind"), .name = TextAt(owner, "name")};
  }
  return {};
}

// "containerd://3f2a..." and the like.
std::string IdOf(const std::string& text) {
  const size_t scheme = text.find("://");
  return scheme == std::string::npos ? "" : text.substr(scheme + 3);
}

std::vector<ContainerMetadata> ContainersOf(const json& pod) {
  const json& metadata = At(pod, "metadata");
  const auto known = std::make_shared<const PodMetadata>(
      PodMetadata{.name = TextAt(metadata, "name"),
                  .name_space = TextAt(metadata, "namespace"),
                  .uid = TextAt(metadata, "uid"),
                  .labels = TextsAt(metadata, "labels"),
                  .annotations = TextsAt(metadata, "annotations"),
                  .owner = OwnerOf(metadata)});
  std::vector<ContainerMetadata> containers;
  if (known->name.empty() || known->uid.empty()) return containers;
  for (const char* key :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    const json& statuses = At(At(pod, "status"), key);
    if (!statuses.is_array()) continue;
    for (const json& status : statuses) {
      std::string id = IdOf(TextAt(status, "containerID"));
      if (id.empty()) continue;
      const json& restarts = At(status, "restartCount");
      containers.push_back({.id = std::move(id),
                            .name = TextAt(status, "name"),
                            .image = TextAt(status, "image"),
                            .attempt = restarts.is_number_unsigned() ? restarts.get<uint32_t>() : 0,
                            .pod = known});
    }
  }
  return containers;
}

}  // namespace

Result<PodListPage> ReadPodList(std::string_view text) {
  const json list = ParseJson(text, IsWanted<kDepthInList>);
  // A list without pods has "items": null, as Go writes an empty slice.
  const json& items = At(list, "items");
  if (!list.is_object() || !list.contains("items") || !(items.is_array() || items.is_null())) {
    return Fail(ErrorCode::kMalformed, "the answer is no list of pods");
  }
  PodListPage page;
  page.resource_version = TextAt(At(list, "metadata"), "resourceVersion");
  page.next_page = TextAt(At(list, "metadata"), "continue");
  for (const json& pod : items) {
    for (ContainerMetadata& container : ContainersOf(pod)) {
      page.containers.push_back(std::move(container));
    }
  }
  return page;
}

Result<PodEvent> ReadPodEvent(std::string_view text) {
  const json event = ParseJson(text, IsWanted<kDepthInEvent>);
  const std::string type = TextAt(event, "type");
  const json& object = At(event, "object");
  PodEvent read{.pod_uid = TextAt(At(object, "metadata"), "uid"),
                .resource_version = TextAt(At(object, "metadata"), "resourceVersion")};
  if (type == "ADDED" || type == "MODIFIED") {
    read.kind = PodEvent::Kind::kChanged;
    read.containers = ContainersOf(object);
  } else if (type == "DELETED") {
    read.kind = PodEvent::Kind::kDeleted;
  } else if (type == "BOOKMARK") {
    read.kind = PodEvent::Kind::kBookmark;
  } else if (type == "ERROR") {
    const json& code = At(object, "code");
    const bool gone = code.is_number_integer() && code == kGone;
    read.kind = gone ? PodEvent::Kind::kGone : PodEvent::Kind::kFailed;
    read.message = Printable(TextAt(object, "message"), kLongestMessage);
  } else {
    return Fail(ErrorCode::kMalformed, "the watch sent what is no event");
  }
  return read;
}

}  // namespace pyrometer
