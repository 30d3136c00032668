// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// What the kernel side can address (PYRO_MAX_CHUNKS of abi/unwind.h).
inline constexpr size_t kMostUnwindMemory = size_t{256} << 20;

// "64MiB", "64M" or "64": bytes for unwind tables, 1 to 256 MiB. Errors: kInvalid.
Result<size_t> ParseUnwindMemory(std::string_view text);

}  // namespace pyrometer
