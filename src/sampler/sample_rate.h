// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/procfs.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// kernel.perf_event_max_sample_rate. The kernel throttles more frequent events, so ticks are lost,
// and lowers the limit itself when sampling has taken too much time. Nothing if it is unreadable.
std::optional<Hertz> ReadSampleRateLimit(const Procfs& procfs);

// Errors: kUnsupported if the kernel would throttle sampling at `frequency`.
Result<void> CheckSampleRate(const Procfs& procfs, Hertz frequency);

}  // namespace pyrometer
