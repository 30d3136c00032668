// SPDX-License-Identifier: Apache-2.0
#include "sampler/sample_rate.h"

#include <cstdint>

#include "base/sysctl.h"

namespace pyrometer {

std::optional<Hertz> ReadSampleRateLimit(const Procfs& procfs) {
  const std::optional<int64_t> limit = ReadSysctl(procfs, "kernel/perf_event_max_sample_rate");
  if (!limit || *limit < 0 || *limit > UINT32_MAX) return std::nullopt;
  return Hertz{static_cast<uint32_t>(*limit)};
}

Result<void> CheckSampleRate(const Procfs& procfs, Hertz frequency) {
  const std::optional<Hertz> limit = ReadSampleRateLimit(procfs);
  if (!limit || frequency <= *limit) return {};
  return Fail(ErrorCode::kUnsupported,
              "the kernel allows {0} samples per second (kernel.perf_event_max_sample_rate) and "
              "would throttle {1}; give --frequency {0}, or run sysctl -w "
              "kernel.perf_event_max_sample_rate={1}",
              limit->value, frequency.value);
}

}  // namespace pyrometer
