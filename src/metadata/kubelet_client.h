// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "metadata/container_source.h"
#include "metadata/http_getter.h"

namespace pyrometer {

// Asks this node's kubelet for its pods: GET /pods. Needs the permission `get` on nodes/pods, or on
// nodes/proxy before Kubernetes 1.33. Thread-safe.
class KubeletClient final : public ContainerSource {
 public:
  explicit KubeletClient(HttpEndpoint endpoint) : url_(endpoint.url), http_(std::move(endpoint)) {}

  // Those that have an id by now. Errors as in ContainerSource; kExhausted for more than 16 MiB.
  Result<std::vector<ContainerMetadata>> List() override;
  void Cancel() override { http_.Cancel(); }

 private:
  const std::string url_;
  HttpGetter http_;
};

}  // namespace pyrometer
