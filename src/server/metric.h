// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pyrometer/labels.h"

namespace pyrometer {

// How often something took how long, as Prometheus counts it.
struct MetricHistogram {
  struct Bucket {
    double at_most = 0;       // its upper bound, in the metric's unit
    uint64_t cumulative = 0;  // all that were no greater, those of lower buckets included
  };
  std::vector<Bucket> buckets;  // by rising bound, without the infinite one
  uint64_t count = 0;
  double sum = 0;
};

// One number and its meaning. Those of one name may stand apart and differ in their labels' values.
struct Metric {
  // Without the prefix `pyrometer_`, in base units (seconds, bytes): "ticks_total". What ends in
  // _total is a counter, what has a histogram is one, and all else are gauges.
  std::string name;
  Labels labels;
  double value = 0;  // unless it has a histogram
  std::string help;  // one line
  std::optional<MetricHistogram> histogram = std::nullopt;
};

}  // namespace pyrometer
