// SPDX-License-Identifier: Apache-2.0
// Pods as Kubernetes' API writes them: a PodList, and the events of a watch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metadata/container_metadata.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct PodListPage {
  std::vector<ContainerMetadata> containers;  // those that have an id by now
  std::string resource_version{};
  std::string next_page{};  // for the parameter `continue`; "": this was the last
};

struct PodEvent {
  enum class Kind { kChanged, kDeleted, kBookmark, kGone, kFailed };
  Kind kind = Kind::kFailed;
  std::string pod_uid{};
  std::string resource_version{};
  std::vector<ContainerMetadata> containers{};  // of kChanged
  std::string message{};                        // of kFailed
};

// What is of another type than it should be counts as not there; a pod without a name or a uid is
// left out. Of labels and annotations those that are too long for any profile's (2,048 bytes) are
// left out. Nesting deeper than 32 is not looked at. Errors: kMalformed if it is no JSON or no
// PodList.
Result<PodListPage> ReadPodList(std::string_view json);

// One line of a watch. Errors: kMalformed.
Result<PodEvent> ReadPodEvent(std::string_view json);

}  // namespace pyrometer
