// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

// `profile` as a gzipped pprof protobuf, as `go tool pprof`, Pyroscope and Parca read it.
//
// Sample types are the profile's value types, samples/count and cpu/nanoseconds for CPU time; the
// last one is the default. Ids 1..N in order of first use; mapping 1 is the executable that most
// samples ran in. Sample labels: pid (a number), comm, thread, the profile's own and those of the
// sample's process; of two with one name the first in this order is written. A stack that was cut
// has a root frame that says so, see CutMarker(). All strings are valid UTF-8. Beside its result it
// needs memory for the distinct strings only. REQUIRES: two value types, see ProfileSample.
std::string EncodePprof(const Profile& profile);

}  // namespace pyrometer
