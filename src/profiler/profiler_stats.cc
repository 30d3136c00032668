// SPDX-License-Identifier: Apache-2.0
#include "profiler/profiler_stats.h"

namespace pyrometer {

std::vector<Stat> ListStats(const ProfilerStats& stats) {
  (void)stats;
  return {};
}

}  // namespace pyrometer
