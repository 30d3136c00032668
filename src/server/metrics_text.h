// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "server/metric.h"

namespace pyrometer {

// `metrics` in Prometheus' text format 0.0.4, each name with the prefix `pyrometer_`; families in
// the order in which they first appear. If the helps of one name differ, its HELP line has them
// all. A character that a name may not have becomes `_`; of metrics with the same name and labels
// the first counts, and those of another kind than the first of their name are left out, as
// Prometheus would refuse the whole text otherwise.
std::string MetricsText(std::span<const Metric> metrics);

}  // namespace pyrometer
