// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "metadata/absent_sources.h"
#include "metadata/container_source.h"

namespace pyrometer {

// Several sources as one, which asks the next where one has no containers or is one of
// AbsentSources. One that is there and fails is waited for.
class FirstSource final : public ContainerSource {
 public:
  // REQUIRES: one at least.
  explicit FirstSource(std::vector<std::unique_ptr<ContainerSource>> sources)
      : sources_(std::move(sources)) {}

  // Empty if one has none, and no other any.
  Result<std::vector<ContainerMetadata>> List() override {
    AbsentSources absent;
    bool answered = false;
    for (auto source = sources_.begin(); source != sources_.end(); ++source) {
      Result<std::vector<ContainerMetadata>> list = (*source)->List();
      if (list && list->empty()) {
        answered = true;
      } else if (list) {
        std::for_each(source + 1, sources_.end(), [](const auto& later) { later->Rest(); });
        return list;
      } else if (!absent.Take(list.error())) {
        return list;
      }
    }
    if (answered) return std::vector<ContainerMetadata>();
    return std::move(absent).Why();
  }

  void Cancel() override {
    for (const auto& source : sources_) source->Cancel();
  }

  void TellChanges(const std::function<void()>& changed) override {
    for (const auto& source : sources_) source->TellChanges(changed);
  }

 private:
  const std::vector<std::unique_ptr<ContainerSource>> sources_;
};

}  // namespace pyrometer
