// SPDX-License-Identifier: Apache-2.0
// The files of page/, put into the program at build time.
#pragma once

#include <string_view>

namespace pyrometer {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace pyrometer
