// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/procfs.h"
#include "config/record_config.h"
#include "metadata/cgroup_lookup.h"
#include "pyrometer/result.h"
#include "sampler/sampler.h"

namespace pyrometer {

// The targets of `config` as a filter for the sampler, without the command's process; `named` are
// the cgroups of its `container_names`.
// Errors: kUnsupported outside the host's pid namespace, whatever the targets, since the kernel
// side would take our ids (the command's as well) for those of other processes; kUnsupported for a
// cgroup hierarchy that the kernel side cannot query; kNotFound for a process, cgroup or container
// that does not exist; kInvalid for the id of a thread, or for cgroups of different hierarchies;
// any other if a process cannot be read.
Result<SampleFilter> FindTargets(const Procfs& procfs, const RecordConfig& config,
                                 std::span<const CgroupTarget> named = {});

// Adds a cgroup. Errors: kUnsupported, kInvalid as above.
Result<void> AddCgroup(const CgroupTarget& cgroup, SampleFilter& filter);

// False for a process that is gone, or a zombie. A process that cannot be read counts as alive.
bool IsAlive(const Procfs& procfs, Pid pid);

}  // namespace pyrometer
