// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "pyrometer/ids.h"

namespace pyrometer {

// Entries of one half of each window map.
struct MapSizes {
  uint32_t counts = 4096;
  uint32_t small_stacks = 4096;
  uint32_t medium_stacks = 2048;
  uint32_t large_stacks = 512;
  uint32_t processes = 16384;

  // Room for as many different stacks as there are ticks in `window`, up to kMaxEntries or one
  // second of ticks, whichever is more. A window that fills its maps earlier is drained earlier
  // (Sampler::NearlyFull).
  static MapSizes For(Hertz frequency, uint32_t cpus, std::chrono::nanoseconds window);

  static constexpr uint32_t kMinEntries = 1024;
  static constexpr uint32_t kMaxEntries = 4096;
};

}  // namespace pyrometer
