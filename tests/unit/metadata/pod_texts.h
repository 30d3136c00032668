// SPDX-License-Identifier: Apache-2.0
// What the API server writes, as short as it can be.
#pragma once

#include <fmt/format.h>

#include <string>

namespace pyrometer {

// A pod whose uid is its name, with a container whose id is the pod's name, or has none yet.
inline std::string PodText(const std::string& name, const std::string& version,
                           bool has_id = true) {
  return fmt::format(
      R"({{"metadata": {{"name": "{0}", "namespace": "n", "uid": "{0}", "resourceVersion": "{1}"}},)"
      R"("status": {{"containerStatuses": [{{"name": "c", "containerID": "{2}"}}]}}}})",
      name, version, has_id ? "x://" + name : "");
}

// A line of a watch.
inline std::string EventText(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type": "{}", "object": {}}})", type, object) + "\n";
}

inline std::string BookmarkText(const std::string& version) {
  return EventText("BOOKMARK", R"({"metadata": {"resourceVersion": ")" + version + "\"}}");
}

// One page of a list; `next` is where the following one begins, "" for none.
inline std::string ListText(const std::string& items, const std::string& version,
                            const std::string& next = "") {
  return fmt::format(
      R"({{"metadata": {{"resourceVersion": "{}", "continue": "{}"}}, "items": [{}]}})", version,
      next, items);
}

}  // namespace pyrometer
