// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pyrometer/result.h"

namespace pyrometer {

// The directory that libdebuginfod keeps its files in, by build id. Makes it, for its owner only.
// Errors: kPermission if it is another user's, or others may write there; those of making it.
Result<void> PrepareDownloadDirectory(const std::string& path);

// Removes what was used longest ago until no more than `most_bytes` are left, and from an hour ago
// what is left of downloads that were cut off, and notes of what no server had. Never fails: what
// cannot be removed stays.
void TrimDownloads(const std::string& path, uint64_t most_bytes);

}  // namespace pyrometer
