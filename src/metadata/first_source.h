// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "metadata/container_source.h"

namespace pyrometer {

// Two sources as one: what the first does not do, since there is none or it speaks another
// protocol, the second does. So a machine with Docker, whose containerd does not speak CRI, has its
// names.
class FirstSource final : public ContainerSource {
 public:
  FirstSource(std::unique_ptr<ContainerSource> first, std::unique_ptr<ContainerSource> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  // The first's error, unless the second says more than that there is none.
  Result<std::vector<ContainerMetadata>> List() override {
    Result<std::vector<ContainerMetadata>> list = first_->List();
    if (list || !IsAbsence(list.error())) return list;
    Result<std::vector<ContainerMetadata>> other = second_->List();
    if (other || !IsAbsence(other.error())) return other;
    return list;
  }

  void Cancel() override {
    first_->Cancel();
    second_->Cancel();
  }

 private:
  static bool IsAbsence(const Error& error) {
    return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kUnsupported;
  }

  const std::unique_ptr<ContainerSource> first_;
  const std::unique_ptr<ContainerSource> second_;
};

}  // namespace pyrometer
