// SPDX-License-Identifier: Apache-2.0
#include "sampler/map_sizes.h"

#include <algorithm>
#include <bit>

namespace pyrometer {

MapSizes MapSizes::For(Hertz frequency, uint32_t cpus, std::chrono::nanoseconds window) {
  const uint64_t ticks_per_second = static_cast<uint64_t>(frequency.value) * std::max(cpus, 1U);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(window).count();
  const uint64_t ticks =
      ticks_per_second * static_cast<uint64_t>(std::max<int64_t>(milliseconds, 0)) / 1000;
  const uint64_t most = std::max<uint64_t>(kMaxEntries, ticks_per_second);
  const auto entries =
      static_cast<uint32_t>(std::clamp<uint64_t>(ticks + ticks / 4, kMinEntries, most));
  const uint64_t cold =
      std::clamp(ticks_per_second / 4 * kUsualColdBytes, kMinColdBytes, kMaxColdBytes);
  // Most stacks have at most 32 frames; one in four beyond 128 is rare (Java, deep recursion).
  return MapSizes{.counts = entries,
                  .small_stacks = entries,
                  .medium_stacks = entries / 2,
                  .large_stacks = std::max(entries / 8, 256U),
                  .cold_bytes = static_cast<uint32_t>(std::bit_ceil(cold))};
}

std::chrono::nanoseconds MapSizes::TimeUntil(uint64_t entries, uint64_t used,
                                             uint64_t ticks_per_second) {
  const uint64_t room = entries - std::min(used, entries);
  return std::chrono::nanoseconds(room * 1'000'000'000 / std::max<uint64_t>(ticks_per_second, 1));
}

}  // namespace pyrometer
