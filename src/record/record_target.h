// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/procfs.h"
#include "config/record_config.h"
#include "pyrometer/result.h"
#include "sampler/sampler.h"

namespace pyrometer {

// What `config` asks for in the terms of the sampler. The command's process is not part of it.
// Errors: kUnsupported in another pid namespace than the host's, whatever is asked for, since the
// kernel side then takes ids (that of the command, too) for those of other processes, and for a
// cgroup hierarchy that the kernel side cannot ask about; kNotFound for a process, cgroup or
// container that does not exist; kInvalid for the id of a thread, or for cgroups of different
// hierarchies; any other if a process cannot be read.
Result<SampleFilter> FindTargets(const Procfs& procfs, const RecordConfig& config);

// False for a process that is gone, or dead and only not yet waited for. One that cannot be read
// lives.
bool IsAlive(const Procfs& procfs, Pid pid);

}  // namespace pyrometer
