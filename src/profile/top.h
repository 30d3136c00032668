// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

struct TopOptions {
  size_t functions = 25;  // rows at most
  size_t processes = 10;
  size_t width = 100;  // columns at most; at least 80 are used
};

// The functions that most samples were in, as text for a terminal: SELF counts the samples that hit
// the function itself, TOTAL those that have it anywhere in their stack, once each however often it
// recurs. Below it the processes. Ends in a newline; holds no control characters but newlines.
std::string EncodeTop(const Profile& profile, const TopOptions& options = {});

}  // namespace pyrometer
