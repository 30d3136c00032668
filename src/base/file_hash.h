// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pyrometer/ids.h"

namespace pyrometer {

// So much of a file's beginning and of its end goes into its hash.
inline constexpr size_t kHashedPart = 4096;

// What OpenTelemetry calls process.executable.build_id.htlhash: the first 16 bytes of the SHA-256
// of the file's first 4096 bytes, its last 4096 bytes and its size as 8 bytes, most significant
// first. Of a file that is shorter than 4096 bytes both parts are all of it. REQUIRES: `head` and
// `tail` are those of a file of `size` bytes.
FileHash HashOf(std::span<const std::byte> head, std::span<const std::byte> tail, uint64_t size);

}  // namespace pyrometer
