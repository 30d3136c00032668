// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// No recording is longer: beyond it lie typing errors, and sums that overflow.
inline constexpr std::chrono::hours kLongestDuration{24 * 366};

// "10s", "1m30s", "500ms", "1.5h": numbers with units (h, m, s, ms, us, ns), more than nothing in
// sum and at most kLongestDuration. Errors: kInvalid.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// In the same notation, without loss: "1m30s".
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace pyrometer
