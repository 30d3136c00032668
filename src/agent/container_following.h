// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "config/agent_config.h"
#include "metadata/container_directory.h"
#include "metadata/node_labels.h"

namespace pyrometer {

// The containers of this machine, with a thread that has no capabilities; null if `config` wants
// none. `log` is told which keys have no effect, and when they cannot be listed; with mode `auto`
// not of a machine that has no container runtime. `clock` and `log` outlive it. REQUIRES:
// GrpcClient::ConfigureLibrary() was called.
std::unique_ptr<ContainerDirectory> FollowContainers(const KubernetesConfig& config,
                                                     const Clock& clock, Log& log);

// The labels of the node itself that `config` wants; null: none.
std::unique_ptr<NodeLabels> FollowNode(const KubernetesConfig& config, const Clock& clock,
                                       Log& log);

// Whether both mean the same source of containers, asked in the same way.
bool IsSameSource(KubernetesConfig one, const KubernetesConfig& other);

}  // namespace pyrometer
