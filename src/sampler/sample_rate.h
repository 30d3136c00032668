// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/procfs.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// kernel.perf_event_max_sample_rate: events that come more often are throttled, that is, ticks are
// lost. The kernel lowers it by itself when sampling has taken too much time. Nothing if
// unreadable.
std::optional<Hertz> ReadSampleRateLimit(const Procfs& procfs);

// Errors: kUnsupported if the kernel would throttle sampling at `frequency`.
Result<void> CheckSampleRate(const Procfs& procfs, Hertz frequency);

}  // namespace pyrometer
