// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace pyrometer {

// Whether `a` is shown rather than `b` where both name one function and nothing else tells them
// apart: the one with the fewest leading underscores, the shortest, the first in byte order.
bool BetterName(std::string_view a, std::string_view b);

}  // namespace pyrometer
