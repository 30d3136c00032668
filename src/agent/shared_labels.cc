// SPDX-License-Identifier: Apache-2.0
#include "agent/shared_labels.h"

namespace pyrometer {

LabelSet SharedLabels::Share(Labels labels) {
  const auto known = known_.find(labels);
  if (known != known_.end()) {
    if (LabelSet shared = known->second.lock()) return shared;
  } else if (IsFull()) {
    Forget();
    if (IsFull()) return other_;
  }
  ++changes_;
  auto shared = std::make_shared<const Labels>(labels);
  known_.insert_or_assign(std::move(labels), shared);
  return shared;
}

void SharedLabels::Forget() {
  changes_ += std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
}

std::vector<LabelSet> SharedLabels::Living() const {
  std::vector<LabelSet> living;
  for (const auto& [labels, set] : known_) {
    if (LabelSet shared = set.lock()) living.push_back(std::move(shared));
  }
  return living;
}

}  // namespace pyrometer
