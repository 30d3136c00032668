// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

struct TopOptions {
  size_t functions = 25;  // at most this many rows
  size_t processes = 10;
  size_t width = 120;  // at most this many columns; less than 80 counts as 80
};

// Lists the functions with the most samples, as text for a terminal. SELF counts the samples taken
// in the function itself, TOTAL those with it anywhere in their stack, once each even if it
// recurses. SOURCE is the line where it has most of its own samples, or of those of its callees if
// it has none; the column is there if lines are known and there is room. [k] marks the kernel's
// functions, [j] those of JITs, [i] those that are inlined wherever they are called. The
// processes follow. The text ends in a newline and has no other control characters
// than newlines.
std::string EncodeTop(const Profile& profile, const TopOptions& options = {});

}  // namespace pyrometer
