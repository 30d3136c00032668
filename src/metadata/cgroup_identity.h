// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pyrometer {

// Whose a process is, as far as the path of its cgroup tells.
struct CgroupIdentity {
  std::string container_id;  // of the innermost container; "" outside of all
  // Outside of containers, the systemd service it is part of; else, as sessions and scopes are
  // numbered, the slice. "" without systemd.
  std::string systemd_unit;

  bool operator==(const CgroupIdentity&) const = default;
};

// The identity in `path`, a cgroup's path below the root of its hierarchy, made by any runtime with
// any cgroup driver, also as seen from another cgroup namespace ("/../../x").
CgroupIdentity IdentityOf(std::string_view path);

// Which of Kubernetes' pods a process is in, as far as the path of its cgroup tells: of the
// kubelet, with either cgroup driver.
struct CgroupPod {
  std::string uid;       // as Kubernetes has it, also of a static pod; "" outside of all
  std::string_view qos;  // "Guaranteed", "Burstable", "BestEffort"

  bool operator==(const CgroupPod&) const = default;
};

// The innermost pod in `path`, as above.
CgroupPod PodOf(std::string_view path);

// The innermost slice of systemd in such a path, also that of a container; "" without systemd.
std::string_view SliceOf(std::string_view path);

// The path that tells most among those in the text of /proc/PID/cgroup (cgroups(7)): where version
// 1 has hierarchies, one that names a container, else that of systemd. "" if there is none.
std::string_view TellingCgroup(std::string_view text);

// The path in version 2's hierarchy in such a text. "" where no version 2 is mounted.
std::string_view Version2Cgroup(std::string_view text);

// The name of a systemd service's work: "nginx" of "nginx.service". "" of other units, and of a
// user's service manager, whose processes have nothing in common.
std::string_view ServiceOfUnit(std::string_view unit);

}  // namespace pyrometer
