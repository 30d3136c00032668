// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Who wants to know at once what every process has mapped: the kernel side of the sampler.
// Called with the tracker's lock held, on its thread or on that of whoever asks it, one call at a
// time: never call it back.
class AddressSpaceSink {
 public:
  virtual ~AddressSpaceSink() = default;

  // Program `exec` of `process` has these executable mappings: ascending, not overlapping, all
  // that are known. They were there some milliseconds ago, and what is unmapped is not reported:
  // they are true while mm->exec_vm is `exec_pages`, where they are not shifting. Replaces what
  // was published for the pid before.
  virtual void Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
                       std::span<const PublishedMapping> sorted) = 0;

  // Nothing is known any more of the process that was published under this pid: it is gone, or
  // runs a program of which nothing is mapped yet.
  virtual void Withdraw(Pid pid) = 0;

  // Time has passed: what was taken for programs that were withdrawn or replaced may be given back
  // by now, though nothing is published.
  virtual void ReleaseWithdrawn() = 0;
};

}  // namespace pyrometer
