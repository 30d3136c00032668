// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/procfs.h"
#include "config/record_config.h"
#include "pyrometer/result.h"
#include "sampler/sampler.h"

namespace pyrometer {

// The targets of `config` as a filter for the sampler, without the command's process.
// Errors: kUnsupported outside the host's pid namespace, whatever the targets, since the kernel
// side would take our ids (the command's as well) for those of other processes; kUnsupported for a
// cgroup hierarchy that the kernel side cannot query; kNotFound for a process, cgroup or container
// that does not exist; kInvalid for the id of a thread, or for cgroups of different hierarchies;
// any other if a process cannot be read.
Result<SampleFilter> FindTargets(const Procfs& procfs, const RecordConfig& config);

// False for a process that is gone, or a zombie. A process that cannot be read counts as alive.
bool IsAlive(const Procfs& procfs, Pid pid);

}  // namespace pyrometer
