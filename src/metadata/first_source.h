// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "metadata/container_source.h"

namespace pyrometer {

// Several sources as one: what one does not do, since there is none, it may not be asked, it speaks
// another protocol or has no containers, the next does. So a machine with Docker has its names,
// whose containerd does not speak CRI, or does and tells of Kubernetes' containers only. One that
// is there and fails is waited for.
class FirstSource final : public ContainerSource {
 public:
  // REQUIRES: one at least.
  explicit FirstSource(std::vector<std::unique_ptr<ContainerSource>> sources)
      : sources_(std::move(sources)) {}

  // Empty if one has none, and no other any. The error is the first that says more than that there
  // is none, if there is such a one.
  Result<std::vector<ContainerMetadata>> List() override {
    std::optional<Error> error;
    bool answered = false;
    for (const auto& source : sources_) {
      Result<std::vector<ContainerMetadata>> list = source->List();
      if (list && list->empty()) {
        answered = true;
        continue;
      }
      const bool is_refused = !list && list.error().code() == ErrorCode::kPermission;
      if (list || !(is_refused || IsAbsence(list.error()))) return list;
      if (!error || (is_refused && IsAbsence(*error))) error = std::move(list).error();
    }
    if (answered) return std::vector<ContainerMetadata>();
    return *std::move(error);
  }

  void Cancel() override {
    for (const auto& source : sources_) source->Cancel();
  }

  void TellChanges(const std::function<void()>& changed) override {
    for (const auto& source : sources_) source->TellChanges(changed);
  }

 private:
  static bool IsAbsence(const Error& error) {
    return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kUnsupported;
  }

  const std::vector<std::unique_ptr<ContainerSource>> sources_;
};

}  // namespace pyrometer
