// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pyrometer/ids.h"

namespace pyrometer {

// How long memory that the sampling program reads rests after the last reference to it is removed,
// before it is reused: a running program may have read the reference just before. A run takes
// microseconds, or a little more if a hypervisor stops the virtual CPU in the middle of it.
inline constexpr std::chrono::seconds kReaderQuarantine{1};

// How long mappings that no known process refers to stay valid, if there is room: the fork program
// may have copied a reference for a child that we learn of later, and the next process that maps
// the same objects finds their tables loaded.
inline constexpr std::chrono::seconds kIdleMappings{10};

// True if `quarantine`, which began at `when`, is over.
constexpr bool IsOver(std::chrono::nanoseconds quarantine, MonotonicTime when, MonotonicTime now) {
  return now.value() > when.value() + static_cast<uint64_t>(quarantine.count());
}

}  // namespace pyrometer
