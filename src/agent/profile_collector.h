// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "profile/profile_builder.h"
#include "profiler/window_consumer.h"
#include "pyrometer/profile.h"
#include "pyrometer/result.h"

namespace pyrometer {

class Profiler;

// Adds up one period for somebody who waits for it.
class PeriodAdder final : public WindowConsumer {
 public:
  explicit PeriodAdder(Labels labels) : builder_({.labels = std::move(labels)}) {}

  void Consume(const Delivery& delivery) override;

  // Waits for the end of the period; false if it has not come by `until`, or at a stop request.
  bool AwaitEnd(const Clock& clock, MonotonicTime until, const std::stop_token& stop);

  // REQUIRES: Consume is not called any more.
  Profile Finish() &&;

 private:
  ProfileBuilder builder_;  // until the end: the consumer's thread's
  Accounting missed_;       // likewise
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// How to collect a profile that begins now.
struct CollectOptions {
  std::chrono::nanoseconds duration{};
  Labels labels;                                                // on every sample
  std::function<void(Profile&)> complete{};                     // labels that are known only now
  std::function<bool(const ProfileSample&)> keep{};             // null: all
  std::chrono::nanoseconds patience{std::chrono::seconds(10)};  // for naming, after the end
};

// A profile of the next `duration`, beside whatever else the profiler does. Errors: kExhausted if
// its windows are not named in time; kInternal at a stop request.
Result<Profile> CollectProfile(Profiler& profiler, const Clock& clock,
                               const CollectOptions& options, const std::stop_token& stop);

}  // namespace pyrometer
