// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "profile/stack_batches.h"
#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

struct OtlpOptions {
  Labels resource;                   // its attributes: service.name, k8s.pod.name, ...
  size_t name = BatchLimits::kNone;  // bytes of any one string; what is cut off ends in "..."
};

// Encodes some of a profile's stacks as an ExportProfilesServiceRequest of OTLP 1.10 (and 1.11),
// not compressed, that every receiver we know of reads: one profile with a resource, a scope and
// all types set; one value for each sample and no timestamps; attributes are strings; row 0 of each
// table of the dictionary is its zero value, no row occurs twice and none is unused.
//
// A profile has one sample type, of ours the ticks, samples/count, with the period in
// cpu/nanoseconds: what OpenTelemetry's own profiler sends, and what Pyroscope multiplies to the
// CPU time that it shows as process_cpu. (Ticks taken at another frequency than the profile's,
// which are unwound late after a change, so count as much as the others.) REQUIRES: `stacks` are of
// `profile`.
std::string EncodeOtlp(const Profile& profile, std::span<const StackCount> stacks,
                       const OtlpOptions& options);

}  // namespace pyrometer
