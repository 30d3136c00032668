// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

// `profile` as collapsed stacks, one a line: "process;root;...;leaf COUNT\n", as flamegraph.pl,
// speedscope and inferno read them. Kernel functions end in "_[k]"; inlined functions are frames
// like others; below the process of a stack that was cut stands CutMarker(). A ';' in a name
// becomes ':'. Lines are distinct, and in the order of their frames.
std::string EncodeFolded(const Profile& profile);

}  // namespace pyrometer
