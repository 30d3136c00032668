// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "pyrometer/naming.h"
#include "pyrometer/result.h"

namespace pyrometer {

// "simple", "full", "none": each form and its word on the command line and in configurations.
std::span<const std::pair<std::string_view, NameForm>> NameForms();

// Errors: kInvalid for any other word.
Result<NameForm> ParseNameForm(std::string_view text);

}  // namespace pyrometer
