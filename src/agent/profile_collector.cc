// SPDX-License-Identifier: Apache-2.0
#include "agent/profile_collector.h"

#include <utility>

#include "profiler/profiler.h"

namespace pyrometer {

void PeriodAdder::Consume(const Delivery& delivery) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;  // the next period has begun already
  }
  builder_.Add(*delivery.window);
  missed_ += delivery.missed;
  if (!delivery.ends_period) return;
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool PeriodAdder::AwaitEnd(std::chrono::steady_clock::time_point until,
                           const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, stop, until, [this] { return ended_; });
}

Profile PeriodAdder::Finish() && {
  Profile profile = std::move(builder_).Finish();
  profile.accounting += missed_;
  return profile;
}

Result<Profile> CollectProfile(Profiler& profiler, const CollectOptions& options,
                               const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  PeriodAdder adder(options.labels);
  const ConsumerId id = profiler.Attach(adder, {.length = options.duration});
  const bool ended = adder.AwaitEnd(begin + options.duration + options.patience, stop);
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
