// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

// `profile` as a gzipped pprof protobuf, as `go tool pprof`, Pyroscope and Parca read it.
//
// Sample types samples/count and cpu/nanoseconds (the default); ids 1..N in order of first use;
// mapping 1 is the executable that most samples ran in. Sample labels: pid (a number), comm, thread
// and the profile's own. A stack that was cut has a root frame that says so, see CutMarker().
// All strings are valid UTF-8. Beside its result it needs memory for the distinct strings only.
// REQUIRES: profile.frequency is not 0.
std::string EncodePprof(const Profile& profile);

}  // namespace pyrometer
