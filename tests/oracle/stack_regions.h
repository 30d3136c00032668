// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pyrometer/ids.h"
#include "tests/oracle/shadow_stack.h"

namespace pyrometer::oracle {

// Tells the stacks of a process apart by the mappings of /proc/PID/maps that they lie in. Stacks
// that share one mapping are one to it.
class StackRegions {
 public:
  explicit StackRegions(Pid pid) : pid_(pid) {}

  // The one that `sp` lies in, or right below: a stack grows when it is first written to.
  Region Of(Address sp);
  // Another program was executed.
  void Forget() { start_ = end_ = Address(); }

 private:
  void Find(Address sp);

  Pid pid_;
  // The last one.
  Address start_;
  Address end_;
};

}  // namespace pyrometer::oracle
