// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

inline constexpr uint64_t kMebibyte = uint64_t{1} << 20;

// Beyond this a size is a typing error, and sums of sizes stay far from overflowing.
inline constexpr uint64_t kLargestByteSize = uint64_t{1} << 50;  // 1024TiB

// "512MiB", "1GiB", "64k", "1.5G", "4096": bytes, at most kLargestByteSize. The units k, M, G and T
// (also K, and with an i or iB) are powers of 1024; those that end in a B alone (kB, MB, GB, TB)
// are powers of 1000, as in GNU's tools. Without a unit, bytes. Errors: kInvalid.
Result<uint64_t> ParseByteSize(std::string_view text);

// Formats in the same notation, without loss and with the largest unit that allows it: "1536MiB".
std::string FormatByteSize(uint64_t bytes);

}  // namespace pyrometer
