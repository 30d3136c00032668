// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "export/spool_file.h"

namespace pyrometer {

// What an earlier run left in a file.
struct SpoolSurvey {
  uint64_t parcels = 0;  // that can be sent
  uint64_t ticks = 0;    // of these
  std::chrono::system_clock::time_point begin{};
  uint64_t doubtful_ticks = 0;  // were being sent
  uint64_t corrupt_ticks = 0;
  uint64_t unreadable = 0;  // parcels, or a file, whose ticks are not known
};

// Ends in the file what cannot be sent, or the next run would count it once more; what was being
// sent can be if it shall arrive at least once.
SpoolSurvey Survey(const SpoolFile& file, bool at_least_once);

}  // namespace pyrometer
