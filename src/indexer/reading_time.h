// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace pyrometer {

// How long reading a file of so many bytes may take: 5 s, and one for each 32 MiB. The slowest in
// sight, an archive of debug information on a busy machine, takes a tenth of that.
inline std::chrono::nanoseconds ReadingTime(uint64_t size) {
  return std::chrono::seconds(5 + std::min<uint64_t>(size >> 25, 55));
}

}  // namespace pyrometer
