// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "metadata/container_directory.h"
#include "profile/label_split.h"
#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// For SplitByLabels(): the labels of ProcessLabels, where they have the id of a container that is
// known by its labels in Kubernetes, see LabelsOfContainer(); nothing while it is awaited. Sets
// without a container, or with one that nobody knows, stay as they are.
std::vector<std::optional<LabelSet>> WithContainerLabels(ContainerDirectory& containers,
                                                         std::span<const LabelSet> sets);

// The same for each sample; those that are awaited stay as they are.
void AddContainerLabels(ContainerDirectory& containers, Profile& profile);

}  // namespace pyrometer
