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

  // A v1 hierarchy without controllers: it only groups processes, for example for systemd.
  bool IsNamed() const { return controller.starts_with("name="); }
  bool operator==(const CgroupMount&) const = default;
};

// Each hierarchy once, by usefulness: v2, then v1, first the controllers that containers are always
// in, last the named hierarchies, which BPF cannot see.
Result<std::vector<CgroupMount>> ReadCgroupMounts(const Procfs& procfs);

}  // namespace pyrometer
