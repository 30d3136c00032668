// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// What the gzip or zlib stream `packed` holds. kMalformed if it is not exactly one whole stream;
// kExhausted if it holds more than `limit` bytes.
Result<std::string> Inflated(std::string_view packed, size_t limit);

}  // namespace pyrometer
