// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "config/agent_config.h"
#include "metadata/container_directory.h"
#include "profile/label_split.h"
#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// The containers of this machine, with a thread that has no capabilities; null if `config` wants
// none. `log` is told when they cannot be listed; with mode `auto` not of a machine that has no
// container runtime of Kubernetes. REQUIRES: GrpcClient::ConfigureLibrary() was called.
std::unique_ptr<ContainerDirectory> FollowContainers(const KubernetesConfig& config, Log& log);

// For SplitByLabels(): the labels of ProcessLabels, where they have the id of a container that is
// known by its labels in Kubernetes, see LabelsOfContainer(); nothing while it is awaited. Sets
// without a container, or with one that nobody knows, stay as they are.
std::vector<std::optional<LabelSet>> WithContainerLabels(ContainerDirectory& containers,
                                                         std::span<const LabelSet> sets);

// The same for each sample; those that are awaited stay as they are.
void AddContainerLabels(ContainerDirectory& containers, Profile& profile);

}  // namespace pyrometer
