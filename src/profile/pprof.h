// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

// Encodes `profile` as a gzipped pprof protobuf, as read by `go tool pprof`, Pyroscope and Parca.
//
// Sample types are the profile's value types, samples/count and cpu/nanoseconds for CPU time; the
// last one is the default. Ids are 1..N in order of first use; mapping 1 is the executable that
// most samples have in their stacks, else such a library. Sample labels are pid (a number), comm,
// thread, the profile's own, and those of the sample's process; of labels with the same name, the
// first in this order is written. A stack that was cut has a root frame that says so, see
// CutMarker(). All strings are valid UTF-8. Besides its result it keeps only what makes strings,
// functions, locations and mappings distinct. REQUIRES: two value types, see ProfileSample.
std::string EncodePprof(const Profile& profile);

}  // namespace pyrometer
