// SPDX-License-Identifier: Apache-2.0
#include "profiler/schedule.h"

#include <algorithm>

#include "base/clock.h"

namespace pyrometer {

void Schedule::Add(ConsumerId consumer, const WindowPeriod& period, const Moment& now) {
  periods_[consumer] = {.period = period, .end = NextEnd(period, now)};
}

void Schedule::Restart(const Moment& now) {
  for (auto& [consumer, running] : periods_) running.end = NextEnd(running.period, now);
}

MonotonicTime Schedule::EndOfWindow(MonotonicTime begin) const {
  MonotonicTime end = After(begin, longest_);
  for (const auto& [consumer, running] : periods_) end = std::min(end, running.end);
  return end;
}

std::vector<ConsumerId> Schedule::EndPeriods(const Moment& now) {
  std::vector<ConsumerId> ended;
  for (auto& [consumer, running] : periods_) {
    if (running.end > now.monotonic) continue;
    ended.push_back(consumer);
    running.end = NextEnd(running.period, now);
  }
  return ended;
}

std::vector<ConsumerId> Schedule::EndAll() const {
  std::vector<ConsumerId> all;
  for (const auto& [consumer, running] : periods_) all.push_back(consumer);
  return all;
}

// An aligned period ends by the wall clock, which is looked at anew each time, because it may be
// set and runs at another speed. If the next multiple is so near that the period would be a sliver
// (the last one ended a moment early), it is the one after that.
MonotonicTime Schedule::NextEnd(const WindowPeriod& period, const Moment& now) {
  if (!period.aligned) return After(now.monotonic, period.length);
  const auto since = now.wall.time_since_epoch() % period.length;
  auto rest = period.length - std::chrono::duration_cast<std::chrono::nanoseconds>(since);
  if (rest < period.length / 10) rest += period.length;
  return After(now.monotonic, rest);
}

}  // namespace pyrometer
