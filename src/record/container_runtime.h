// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.h"
#include "config/environment.h"
#include "metadata/container_source.h"

namespace pyrometer {

// The container runtime of this machine: by CRI, at CONTAINER_RUNTIME_ENDPOINT as for crictl or
// where runtimes usually listen; where that is none, Docker or podman, at DOCKER_HOST or likewise.
// Of these variables only "unix://PATH" and "/PATH" count. `clock` outlives it. REQUIRES:
// GrpcClient::ConfigureLibrary() was called.
std::unique_ptr<ContainerSource> LocalContainerRuntime(const Environment& environment,
                                                       const Clock& clock);

}  // namespace pyrometer
