// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "base/procfs.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// What this process and its children have used and hold now.
struct OwnUse {
  std::chrono::nanoseconds cpu{};    // user and system time, since each began
  std::chrono::nanoseconds ticks{};  // of others' CPU time; MeasureOwnUse leaves it 0
  uint64_t resident_bytes = 0;       // shared pages counted once for each of them
  uint64_t kernel_bytes = 0;         // BPF maps and programs
  uint64_t open_files = 0;           // of this process alone
  uint64_t threads = 0;              // likewise
};

// Reads them from /proc. What cannot be read counts as nothing.
OwnUse MeasureOwnUse(const Procfs& procfs, Pid self);

// The share of one CPU used, ticks included, between two looks; 0 if no time passed. A child that
// ended in between takes its time with it, so a share is never less than 0.
double CpuShare(const OwnUse& before, const OwnUse& now, std::chrono::nanoseconds passed);

}  // namespace pyrometer
