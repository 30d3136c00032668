// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace pyrometer {

// A spool of a sink that is not configured, or not for this protocol.
struct LeftSpool {
  std::string name;      // of its directory
  uint64_t removed = 0;  // windows that were too old
  uint64_t waiting = 0;  // windows that stay, for the sink to come back; 0: the directory is gone
};

// Looks for such spools in the directory of all, where those named `kept` are in use, and removes
// from them what was written more than `max_age` ago. What cannot be read, or has another process,
// is left alone.
std::vector<LeftSpool> SweepLeftSpools(const std::string& directory,
                                       const std::vector<std::string>& kept,
                                       std::chrono::nanoseconds max_age);

}  // namespace pyrometer
