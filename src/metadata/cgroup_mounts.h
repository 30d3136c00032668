// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/procfs.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where one cgroup hierarchy is mounted.
struct CgroupMount {
  std::string path;
  bool v2 = false;
  std::string controller;  // v1: "cpu", "cpu,cpuacct", "name=systemd", ...; v2: ""

  // A v1 hierarchy without controllers: it groups processes for systemd, say, and no more.
  bool IsNamed() const { return controller.starts_with("name="); }
  bool operator==(const CgroupMount&) const = default;
};

// Each hierarchy once, v2 first, then v1 in the order of their use to us: the controllers that
// containers are always in, and named hierarchies, which BPF cannot see, last.
Result<std::vector<CgroupMount>> ReadCgroupMounts(const Procfs& procfs);

}  // namespace pyrometer
