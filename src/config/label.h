// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pyrometer/result.h"

namespace pyrometer {

using Label = std::pair<std::string, std::string>;

// A name is [a-zA-Z_][a-zA-Z0-9_]* and not one that every sample has anyway (pid, comm, thread). A
// value is not empty, is valid UTF-8 (protobuf requires it) and has no control characters. Errors:
// kInvalid.
Result<void> CheckLabel(std::string_view name, std::string_view value);

// "name=value", as above.
Result<Label> ParseLabel(std::string_view text);

// All of them, in order; a repeated name is an error.
Result<std::vector<Label>> ParseLabels(std::span<const std::string> texts);

}  // namespace pyrometer
