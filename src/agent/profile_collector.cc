// SPDX-License-Identifier: Apache-2.0
#include "agent/profile_collector.h"

#include <utility>

#include "base/await_until.h"
#include "profiler/profiler.h"

namespace pyrometer {

void PeriodAdder::Consume(const Delivery& delivery) {
  {
    const absl::MutexLock lock(&mutex_);
    if (ended_) return;  // the next period has begun already
  }
  builder_.Add(*delivery.window);
  missed_ += delivery.missed;
  if (!delivery.ends_period) return;
  const absl::MutexLock lock(&mutex_);
  ended_ = true;
}

bool PeriodAdder::AwaitEnd(const Clock& clock, MonotonicTime until, const std::stop_token& stop) {
  // Takes the mutex, so that the condition is looked at again.
  const std::stop_callback look(stop, [this] { const absl::MutexLock lock(&mutex_); });
  const absl::MutexLock lock(&mutex_);
  AwaitUntil(mutex_, clock, until, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ || stop.stop_requested();
  });
  return ended_;
}

Profile PeriodAdder::Finish() && {
  Profile profile = std::move(builder_).Finish();
  profile.accounting += missed_;
  return profile;
}

Result<Profile> CollectProfile(Profiler& profiler, const Clock& clock,
                               const CollectOptions& options, const std::stop_token& stop) {
  const MonotonicTime begin = clock.Now();
  PeriodAdder adder(options.labels);
  const ConsumerId id = profiler.Attach(adder, {.length = options.duration});
  const MonotonicTime until = After(begin, options.duration + options.patience);
  const bool ended = adder.AwaitEnd(clock, until, stop);
  profiler.Detach(id);
  if (stop.stop_requested()) return Fail(ErrorCode::kInternal, "stopped");
  if (!ended) {
    return Fail(ErrorCode::kExhausted,
                "the profile was not named in time: the agent is behind; try again");
  }
  Profile profile = std::move(adder).Finish();
  if (options.complete) options.complete(profile);
  if (options.keep) {
    std::erase_if(profile.samples, [&](const ProfileSample& s) { return !options.keep(s); });
  }
  return profile;
}

}  // namespace pyrometer
