// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pyrometer/ids.h"

namespace pyrometer {

// Memory that the sampling program reads is reused only some time after the last reference to it
// was taken away: a running program may have read the reference just before. A run takes
// microseconds; on a hypervisor that stops a virtual CPU in the middle of it, a little more.
inline constexpr std::chrono::seconds kReaderQuarantine{1};

// The same where a reference may have been copied by the fork program, of which we hear later.
inline constexpr std::chrono::seconds kForkQuarantine{10};

// True if `quarantine`, begun at `when`, is over.
constexpr bool IsOver(std::chrono::nanoseconds quarantine, MonotonicTime when, MonotonicTime now) {
  return now.value() > when.value() + static_cast<uint64_t>(quarantine.count());
}

}  // namespace pyrometer
