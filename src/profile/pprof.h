// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "profile/stack_batches.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Encodes `profile` as a gzipped pprof protobuf, as read by `go tool pprof`, Pyroscope and Parca.
//
// Sample types are the profile's value types, samples/count and, for CPU time, cpu/nanoseconds; the
// last one is the default. Ids are 1..N in order of first use; mapping 1 is the executable that
// most samples have in their stacks, else such a library. Sample labels are pid (a number), comm,
// thread, the profile's own, and those of the sample's process; of labels with the same name, the
// first in this order is written. A stack that was cut has a root frame that says so, see
// CutMarker(). All strings are valid UTF-8. Besides its result it keeps only what makes strings,
// functions, locations and mappings distinct. REQUIRES: two value types, see ProfileSample.
std::string EncodePprof(const Profile& profile);

struct PprofOptions {
  // Whether mappings say that their functions are known. Pyroscope then throws away the addresses,
  // so that frames of one function at several addresses are merged as one at address 0.
  bool has_functions = true;
  size_t name = BatchLimits::kNone;     // bytes of any one string; what is cut off ends in "..."
  std::vector<std::string> comments{};  // beside ours
};

struct EncodedPprof {
  std::string gzip;
  size_t plain_size = 0;  // bytes, not compressed
};

// The same for some of a profile's stacks, without sample labels: for receivers that want labels
// beside the profile. Every sample has a frame, "[unknown]" if nothing better is known, since
// servers drop samples without. REQUIRES: `stacks` are of `profile`.
EncodedPprof EncodePprofBatch(const Profile& profile, std::span<const StackCount> stacks,
                              const PprofOptions& options);

}  // namespace pyrometer
