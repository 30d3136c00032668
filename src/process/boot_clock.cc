// SPDX-License-Identifier: Apache-2.0
#include "process/boot_clock.h"

#include <ctime>

#include "base/clock.h"
#include "pyrometer/abi/sampler.h"

namespace pyrometer {
namespace {

uint64_t BootNow() {
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  return static_cast<uint64_t>(boot.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(boot.tv_nsec);
}

}  // namespace

// A thread that is preempted between two clocks must not take that time for suspended time: every
// derived start time would move by as much.
BootClock BootClock::Now() {
  constexpr uint64_t kUndisturbed = 100'000;
  constexpr int kAttempts = 4;
  uint64_t suspended = 0;
  for (int i = 0; i < kAttempts; ++i) {
    const uint64_t before = MonotonicNow().value();
    const uint64_t boot = BootNow();
    const uint64_t after = MonotonicNow().value();
    suspended = boot > after ? boot - after : 0;  // the least that it can have been
    if (suspended == 0 || after - before < kUndisturbed) break;
  }
  return BootClock(suspended);
}

std::chrono::system_clock::time_point WallTimeOf(StartTime start) {
  const auto now = std::chrono::system_clock::now();
  return now - std::chrono::nanoseconds(BootNow()) +
         std::chrono::nanoseconds(start.value() * PYRO_CLOCK_TICK_NS);
}

StartTime BootClock::ToStartTime(MonotonicTime when) const {
  return StartTime((when.value() + suspended_ns_) / PYRO_CLOCK_TICK_NS);
}

}  // namespace pyrometer
