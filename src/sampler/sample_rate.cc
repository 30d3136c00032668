// SPDX-License-Identifier: Apache-2.0
#include "sampler/sample_rate.h"

#include <absl/strings/numbers.h>

#include <string>

#include "base/file.h"

namespace pyrometer {

std::optional<Hertz> ReadSampleRateLimit(const Procfs& procfs) {
  const Result<std::string> text = ReadFile(procfs.root + "/sys/kernel/perf_event_max_sample_rate");
  uint32_t limit = 0;
  if (!text || !absl::SimpleAtoi(*text, &limit)) return std::nullopt;
  return Hertz{limit};
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
