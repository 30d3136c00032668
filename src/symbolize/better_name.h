// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace pyrometer {

// True if `a` is shown rather than `b` when both name one function and nothing else decides: the
// name with fewer leading underscores, then the shorter one, then the first in byte order.
bool BetterName(std::string_view a, std::string_view b);

}  // namespace pyrometer
