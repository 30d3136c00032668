// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

// Encodes `profile` as collapsed stacks, one per line, "process;root;...;leaf COUNT\n", as read by
// flamegraph.pl, speedscope and inferno. Kernel functions end in "_[k]"; inlined functions are
// frames like any other; a stack that was cut has CutMarker() below its process. A ';' in a name
// becomes ':'. Lines are distinct and sorted by their frames.
std::string EncodeFolded(const Profile& profile);

}  // namespace pyrometer
