// SPDX-License-Identifier: Apache-2.0
#include "metadata/kubelet_client.h"

#include <utility>

#include "metadata/pod_json.h"

namespace pyrometer {

Result<std::vector<ContainerMetadata>> KubeletClient::List() {
  ASSIGN_OR_RETURN(const HttpResponse response, http_.Get("/pods", {}));
  if (response.status != HttpResponse::kOk) {
    return ErrorOf(response, url_ + "/pods (needs 'get' on nodes/pods or nodes/proxy)");
  }
  Result<PodListPage> page = ReadPodList(response.body);
  if (!page) return std::move(page).error().With(url_ + "/pods");
  return std::move(page->containers);
}

}  // namespace pyrometer
