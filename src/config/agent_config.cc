// SPDX-License-Identifier: Apache-2.0
#include "config/agent_config.h"

#include <unistd.h>

namespace pyrometer {

bool AutoAsksApiServer(const KubernetesConfig& kubernetes) {
  const ApiServerConfig& api = kubernetes.api;
  if (kubernetes.mode != KubernetesMode::kAuto || api.url.empty()) return false;
  return api.token_file.empty() || ::access(api.token_file.c_str(), R_OK) == 0;
}

}  // namespace pyrometer
