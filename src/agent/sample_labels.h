// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "config/agent_config.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Makes of each profile one for each value that the samples have of the labels wanted: "comm",
// "pid" and "thread", as far as it has no label of that name. Of one period's profiles so many come
// at most: the samples of others stay together, without these labels.
std::vector<Profile> SplitBySampleLabels(std::vector<Profile> profiles, const SampleLabels& wanted,
                                         size_t most);

}  // namespace pyrometer
