// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "metadata/container_source.h"

namespace pyrometer {

// A source that is made only when it is asked for the first time, since it has a thread and a
// connection from its beginning to its end.
class LateSource final : public ContainerSource {
 public:
  using Make = std::function<std::unique_ptr<ContainerSource>()>;

  explicit LateSource(Make make) : make_(std::move(make)) {}

  Result<std::vector<ContainerMetadata>> List() override {
    ContainerSource* const source = Source();
    if (source == nullptr) return Fail(ErrorCode::kIo, "listing containers: shutting down");
    return source->List();
  }

  void Cancel() override {
    const absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    if (source_ != nullptr) source_->Cancel();
  }

  void TellChanges(const std::function<void()>& changed) override {
    const absl::MutexLock lock(&mutex_);
    changed_ = changed;
    if (source_ != nullptr) source_->TellChanges(changed_);
  }

 private:
  // Null after Cancel(), if it was not made before.
  ContainerSource* Source() {
    const absl::MutexLock lock(&mutex_);
    if (source_ == nullptr && !cancelled_) {
      source_ = make_();
      if (changed_) source_->TellChanges(changed_);
    }
    return source_.get();
  }

  const Make make_;
  absl::Mutex mutex_;
  std::function<void()> changed_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ContainerSource> source_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
