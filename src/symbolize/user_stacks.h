// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// User addresses (Frame::Kind::kUserAddress) mean something else in every process, but the sampler
// shares equal stacks between processes. Gives each process its own copy of such stacks.
// Returns the process of each stack in `window` that has user addresses; nothing for the others.
std::vector<std::optional<ProcessKey>> SeparateUserStacks(Window& window);

}  // namespace pyrometer
