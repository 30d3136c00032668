// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/record_config.h"
#include "profiler/profiler_stats.h"

namespace pyrometer {

// Every counter with its meaning, one per line or as a JSON array of objects (name, labels, value,
// help). Ends in a newline.
std::string StatsReport(const ProfilerStats& stats, StatsFormat format);

}  // namespace pyrometer
