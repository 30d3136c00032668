// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "config/environment.h"
#include "metadata/container_source.h"

namespace pyrometer {

// The container runtimes of this machine: by CRI, at CONTAINER_RUNTIME_ENDPOINT as for crictl or
// where runtimes usually listen, and Docker or podman, at DOCKER_HOST or likewise.
// Of these variables only "unix://PATH" and "/PATH" count. REQUIRES:
// GrpcClient::ConfigureLibrary() was called.
std::unique_ptr<ContainerSource> LocalContainerRuntime(const Environment& environment);

// For the user, which of these variables say something else, and so are not looked at; "" if none.
std::string IgnoredEndpoints(const Environment& environment);

}  // namespace pyrometer
