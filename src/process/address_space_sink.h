// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Who wants to know at once what every process has mapped: the kernel side of the sampler.
// Called on the tracker's threads with its lock held, one call at a time: never call it back.
class AddressSpaceSink {
 public:
  virtual ~AddressSpaceSink() = default;

  // From now on, program `exec` of `process` has these executable mappings: ascending, not
  // overlapping. They stay what they are until the next exec; what may be unloaded is not among
  // them. Replaces what was published for the pid before.
  virtual void Publish(const ProcessKey& process, ExecId exec,
                       std::span<const ObjectMapping> sorted) = 0;

  // The process that was published under this pid is gone.
  virtual void Withdraw(Pid pid) = 0;
};

}  // namespace pyrometer
