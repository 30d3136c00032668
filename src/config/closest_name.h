// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pyrometer {

// The name that `typed` was probably meant to be: the one with the fewest changed, added or missing
// letters, if they are few enough not to be another word altogether.
std::optional<std::string> ClosestName(std::string_view typed, std::span<const std::string> names);

}  // namespace pyrometer
