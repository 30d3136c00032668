// SPDX-License-Identifier: Apache-2.0
#include "agent/guest.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace pyrometer {
namespace {

constexpr std::chrono::minutes kLongestShedPause{10};

}  // namespace

Guest::Guest(const Limits& limits, std::function<OwnUse()> measure)
    : measure_(std::move(measure)), limits_(limits), budget_(limits.frequency, limits.cpu) {
  status_.use = measure_();
  status_.frequency = limits.frequency;
}

void Guest::SetLimits(const Limits& limits) {
  const absl::MutexLock lock(&mutex_);
  limits_ = limits;
  budget_ = CpuBudget(limits.frequency, limits.cpu);
  status_.frequency = limits.frequency;
}

Guest::Advice Guest::Look(MonotonicTime now) {
  const OwnUse use = measure_();
  const absl::MutexLock lock(&mutex_);
  Advice advice;
  if (last_look_) {
    const double share = CpuShare(status_.use, use, Between(*last_look_, now));
    advice.frequency = budget_.Look(share);
    status_.cpu = budget_.share() > 0 ? budget_.share() : share;
  }
  last_look_ = now;
  status_.use = use;
  if (advice.frequency && *advice.frequency < status_.frequency) ++status_.slowdowns;
  status_.frequency = budget_.now();
  status_.over_cpu = budget_.over();
  status_.over_memory = use.resident_bytes + use.kernel_bytes > limits_.memory;
  advice.shed = ShouldShed(now);
  if (advice.shed) ++status_.sheds;
  return advice;
}

bool Guest::ShouldShed(MonotonicTime now) {
  if (now < next_shed_) return false;
  if (!status_.over_memory) {
    shed_pause_ = 2 * kInterval;
    return false;
  }
  next_shed_ = After(now, shed_pause_);
  shed_pause_ = std::min<std::chrono::nanoseconds>(2 * shed_pause_, kLongestShedPause);
  return true;
}

Guest::Status Guest::status() const {
  const absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace pyrometer
