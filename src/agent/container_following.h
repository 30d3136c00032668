// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/log.h"
#include "config/agent_config.h"
#include "metadata/container_directory.h"
#include "metadata/node_labels.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The containers of this machine, with a thread that has no capabilities; null if `config` wants
// none. `log` is told which keys have no effect, and when they cannot be listed; with mode `auto`
// not of a machine that has no container runtime. REQUIRES: GrpcClient::ConfigureLibrary() was
// called.
std::unique_ptr<ContainerDirectory> FollowContainers(const KubernetesConfig& config, Log& log);

// The labels of the node itself that `config` wants; null: none.
std::unique_ptr<NodeLabels> FollowNode(const KubernetesConfig& config, Log& log);

// Whether an agent that runs with `now` can go over to `next`: both mean the same source of
// containers and of the node's labels, asked in the same way. Errors: kUnsupported.
Result<void> CheckSameSource(KubernetesConfig next, const KubernetesConfig& now);

}  // namespace pyrometer
