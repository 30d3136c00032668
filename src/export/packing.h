// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "export/series_labels.h"
#include "profile/stack_batches.h"
#include "pyrometer/profile.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Bytes of one name in what we send; the longest that the servers keep is 65,535.
inline constexpr size_t kLongestName = 8192;

// Makes the body of a parcel from some of a profile's stacks.
using BatchEncoder = std::function<std::string(std::span<const StackCount>)>;

// A parcel for each batch of `profile` under `limits`, with the series' labels for people. Nothing
// is dropped; what is changed is in `altered`.
Packed PackBatches(const Profile& profile, const SeriesLabels& series, const BatchLimits& limits,
                   const BatchEncoder& encode);

}  // namespace pyrometer
