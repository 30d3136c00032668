// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pyrometer {

// What a process takes: bytes of memory, and nanoseconds of CPU time. 0 if it is gone.
struct ProcessCost {
  uint64_t resident = 0;
  uint64_t peak = 0;  // of `resident`
  uint64_t cpu = 0;
};

ProcessCost CostOfThisProcess();

// From now on the peak is that since now.
void ForgetPeakOfThisProcess();

// Of the processes that read files for this one: of each figure the greatest.
ProcessCost CostOfReaders();

}  // namespace pyrometer
