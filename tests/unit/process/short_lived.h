// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pyrometer {

// What short_lived writes to its standard output.
struct ShortLife {
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  uint64_t now_ns = 0;        // CLOCK_MONOTONIC
  uint64_t main_address = 0;  // in memory
  uint64_t main_in_elf = 0;
};

}  // namespace pyrometer
