// SPDX-License-Identifier: Apache-2.0
// Which cgroups --pod, --namespace and --container NAME mean.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "config/record_config.h"
#include "metadata/cgroup_lookup.h"
#include "metadata/container_metadata.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A sandbox, which has no name, is one of its pod where no container is named.
bool IsMeant(const ContainerNames& names, const ContainerMetadata& container);

// The cgroups of those of `listed` that `names` means, each once: where no container is named, that
// of the pod if it has one, so that what starts in it later is meant as well. `cgroups` are the
// machine's containers by id; one that is not among them does not run.
std::vector<CgroupTarget> CgroupsOf(const ContainerNames& names,
                                    std::span<const ContainerMetadata> listed,
                                    const std::map<std::string, CgroupTarget>& cgroups);

// For the user, why there are none: nothing of that name, and what there is instead, or nothing
// that runs. kNotFound.
Error NoCgroupOf(const ContainerNames& names, std::span<const ContainerMetadata> listed);

}  // namespace pyrometer
