// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

#include "pyrometer/ids.h"

namespace pyrometer {

// CLOCK_MONOTONIC now: the clock of BPF samples and of our perf events.
inline MonotonicTime MonotonicNow() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return MonotonicTime(static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
                       static_cast<uint64_t>(t.tv_nsec));
}

}  // namespace pyrometer
