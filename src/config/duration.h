// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// The longest recording: anything beyond is a typing error, or overflows sums.
inline constexpr std::chrono::hours kLongestDuration{24 * 366};

// "10s", "1m30s", "500ms", "1.5h", "7d", "1d12h": numbers with units (d, only first; h, m, s, ms,
// us, ns), their sum more than 0 and at most kLongestDuration. Errors: kInvalid.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// Formats in the same notation, without loss: "1m30s".
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace pyrometer
