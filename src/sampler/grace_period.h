// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/result.h"
#include "sampler/skeleton.h"

namespace pyrometer {

// Returns when no BPF program is running any more that was when it was called: none goes by what a
// variable held before.
Result<void> WaitForRunningPrograms(const sampler_bpf& skeleton);

}  // namespace pyrometer
