// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/procfs.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A cgroup in the form that the kernel side compares.
struct CgroupTarget {
  std::string path;  // of its directory
  uint64_t id = 0;   // the directory's inode, which is the kernel's id of the cgroup
  bool v2 = false;
  std::string
      controller;  // v1: one of its hierarchy, by the kernel's own name: "cpu", "io"; v2: ""
};

// The cgroup that a user names by `path`: a directory in a cgroup file system ("/sys/fs/cgroup/
// system.slice/ssh.service"), or a path below a hierarchy's root, with or without a leading '/' as
// in /proc/PID/cgroup; the v2 hierarchy is searched first.
// Errors: kNotFound, also for a path that leads out of the cgroup file systems; kInvalid for a
// file; kUnsupported for a cgroup that exists only in a hierarchy without controllers, which the
// kernel side cannot query.
Result<CgroupTarget> FindCgroup(const Procfs& procfs, const std::string& path);

// The outermost cgroup of the container with this id, or prefix of an id. Errors: kNotFound;
// kInvalid for a prefix that several containers share; kUnsupported as above.
Result<CgroupTarget> FindContainer(const Procfs& procfs, const std::string& id);

// The outermost cgroups of all containers, by container id, in the first hierarchy that has any and
// can be used as a filter. Errors: if the mounts cannot be read.
Result<std::map<std::string, CgroupTarget>> ListContainerCgroups(const Procfs& procfs);

// The cgroup of the pod with this UID, if it is the one right above `container`: containers of the
// pod that start later lie below it as well. Nothing if the pod has no cgroup there.
std::optional<CgroupTarget> PodCgroupOf(const CgroupTarget& container, std::string_view pod_uid);

// Whether it has not been removed, nor another made in its place.
bool Exists(const CgroupTarget& cgroup);

// The container id in the last component of a cgroup path, as any runtime writes it:
// "docker-<id>.scope", "cri-containerd-<id>.scope", "<id>", "x.slice:cri-containerd:<id>"; "" if
// there is none, or if the cgroup is that of a runtime's monitor process.
std::string_view ContainerIdOf(std::string_view name);

}  // namespace pyrometer
