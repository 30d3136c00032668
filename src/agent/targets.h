// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/procfs.h"
#include "config/agent_config.h"
#include "pyrometer/result.h"
#include "pyrometer/sampling.h"

namespace pyrometer {

// Whom to sample, as the kernel knows them at one moment. Cgroups are named by path in the
// configuration, come and go, and have another id each time.
struct Targets {
  SampleFilter filter;
  std::vector<uint64_t> denied;      // sorted ids of excluded cgroups
  std::vector<std::string> missing;  // paths, wanted or excluded, that do not exist now

  bool operator==(const Targets& other) const;
};

// Looks the cgroups up. If all that the filter names are missing, it matches nothing, rather than
// everything. Errors: kUnsupported, kInvalid for a cgroup that the kernel side cannot tell apart or
// exclude (excluded ones must be of version 2).
Result<Targets> FindTargets(const Procfs& procfs, const FilterConfig& config);

// The ids of those cgroups that exist now, of paths in version 2's hierarchy. None without one.
std::vector<uint64_t> FindVersion2Cgroups(const Procfs& procfs, std::span<const std::string> paths);

}  // namespace pyrometer
