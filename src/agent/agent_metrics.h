// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "agent/destinations.h"
#include "agent/environment_reader.h"
#include "agent/guest.h"
#include "agent/window_shipper.h"
#include "metadata/container_directory.h"
#include "profiler/profiler_stats.h"
#include "server/metric.h"

namespace pyrometer {

// All that the agent counts, at one moment.
struct AgentCounters {
  ProfilerStats engine;
  WindowShipper::Counters shipped;
  WindowShipper::Latency latency;
  std::vector<Destinations::State> sinks;
  LeftSpools::Counters left_spools;
  std::optional<ContainerDirectory::Counters> containers{};
  uint64_t nameless_samples = 0;  // see ProcessLabels
  std::optional<EnvironmentReader::Counters> environments{};
  uint64_t recent_bytes = 0;  // of windows that are kept for the page
  Guest::Status guest;
  Hertz configured;
  uint64_t reloads = 0;         // of the configuration, that took effect
  uint64_t failed_reloads = 0;  // that left the old one in force
};

// The same as metrics, in base units.
std::vector<Metric> AgentMetrics(const AgentCounters& counters);

}  // namespace pyrometer
