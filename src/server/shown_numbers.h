// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pyrometer {

std::string ShownCount(uint64_t count);                    // "1,234,567"
std::string ShownShare(double share);                      // "12.3 %", "under 0.1 %"
std::string ShownBytes(uint64_t bytes);                    // "950 B", "12.3 MiB"
std::string ShownDuration(std::chrono::nanoseconds time);  // "1.5 s", "3 min 20 s", "2 d 4 h"
std::string ShownTime(std::chrono::system_clock::time_point time);  // "2026-11-22 20:05:26"
// RFC 3339, in UTC: "2026-11-22T20:05:26Z".
std::string MachineTime(std::chrono::system_clock::time_point time);

}  // namespace pyrometer
