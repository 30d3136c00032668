// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Above this (one sample per 100 microseconds) most samples would show the sampling itself.
inline constexpr Hertz kHighestFrequency{10'000};

// "99": samples per second and CPU, 1 to kHighestFrequency. Errors: kInvalid.
Result<Hertz> ParseFrequency(std::string_view text);

}  // namespace pyrometer
