// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Descriptors of one half of the window maps.
struct WindowMaps {
  int counts = -1;
  std::array<int, PYRO_STACK_CLASSES> stacks{};  // small, medium, large
};

// Takes everything out of one half, which no program writes to any more, and leaves it empty.
// The times of the window are the caller's to set.
// Return addresses in kernel frames become call addresses, as user frames are already.
Result<Window> DrainMaps(const WindowMaps& maps);

}  // namespace pyrometer
