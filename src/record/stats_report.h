// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/record_config.h"
#include "profiler/profiler_stats.h"

namespace pyrometer {

// Every counter with what it means: a line each, or an array of JSON objects (name, labels, value,
// help). Ends in a newline.
std::string StatsReport(const ProfilerStats& stats, StatsFormat format);

}  // namespace pyrometer
