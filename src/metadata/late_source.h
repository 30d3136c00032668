// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "metadata/container_source.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// A source that is made only when it is asked for, since it has a thread and a connection from its
// beginning to its end. That end comes when others have answered in its place for some minutes.
class LateSource final : public ContainerSource {
 public:
  using Make = std::function<std::unique_ptr<ContainerSource>()>;

  // `patience`: so long others answer until its source ends, and is made anew when it is asked
  // again. A runtime that is restarted over and over does not have it made as often.
  explicit LateSource(Make make, std::chrono::nanoseconds patience = std::chrono::minutes(2))
      : make_(std::move(make)), patience_(patience) {}

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

  void Rest() override {
    std::unique_ptr<ContainerSource> ended;  // outside of the lock: its thread may want it
    const absl::MutexLock lock(&mutex_);
    const MonotonicTime now = MonotonicNow();
    if (!resting_since_) resting_since_ = now;
    if (Between(*resting_since_, now) >= patience_) ended = std::move(source_);
  }

 private:
  // Null after Cancel(), if it was not made before.
  ContainerSource* Source() {
    const absl::MutexLock lock(&mutex_);
    resting_since_.reset();
    if (source_ == nullptr && !cancelled_) {
      source_ = make_();
      if (changed_) source_->TellChanges(changed_);
    }
    return source_.get();
  }

  const Make make_;
  const std::chrono::nanoseconds patience_;
  absl::Mutex mutex_;
  std::function<void()> changed_ ABSL_GUARDED_BY(mutex_);
  std::optional<MonotonicTime> resting_since_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ContainerSource> source_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
