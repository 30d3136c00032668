// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// Fewer digits could match other containers by chance; `docker ps` prints this many.
inline constexpr size_t kShortestContainerId = 12;

// A container id as tools print it: 64 hex digits or the first 12 or more of them, an ECS task's
// (32 hex digits, '-', number), either with its runtime before it ("containerd://1f2e..."), which
// is removed. Errors: kInvalid.
Result<std::string> ParseContainerId(std::string_view text);

// Whether a container, pod or namespace may be called so: letters, digits, '.', '_' and '-', at
// most 253 of them, as Kubernetes (RFC 1123) and Docker have it.
bool IsContainerName(std::string_view text);

}  // namespace pyrometer
