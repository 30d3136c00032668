// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Entries of one half of each window map.
struct MapSizes {
  uint32_t counts = 4096;
  uint32_t small_stacks = 4096;
  uint32_t medium_stacks = 2048;
  uint32_t large_stacks = 512;
  uint32_t processes = 16384;
  uint32_t cold_bytes = 2 << 20;  // of the ring buffer of cold samples; a power of two

  // Room for as many different stacks as there are ticks in `window`, up to kMaxEntries or one
  // second of ticks, whichever is more. A window that fills its maps is drained early
  // (WindowSource::NearlyFull).
  static MapSizes For(Hertz frequency, uint32_t cpus, std::chrono::nanoseconds window);

  static constexpr uint64_t NearlyFull(uint64_t capacity) { return capacity / 4 * 3; }
  // The least time until a map of `used` entries has `entries`, if every tick adds one.
  static std::chrono::nanoseconds TimeUntil(uint64_t entries, uint64_t used,
                                            uint64_t ticks_per_second);

  // The ring holds all ticks of a quarter of a second if their stacks are of the usual depth,
  // within these bounds. It is read more often than that.
  static constexpr uint64_t kUsualColdBytes = sizeof(pyro_cold_sample) + 16384;
  static constexpr uint64_t kMinColdBytes = uint64_t{2} << 20;
  static constexpr uint64_t kMaxColdBytes = uint64_t{32} << 20;

  static constexpr uint32_t kMinEntries = 1024;
  static constexpr uint32_t kMaxEntries = 4096;
};

}  // namespace pyrometer
