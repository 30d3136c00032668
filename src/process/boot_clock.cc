// SPDX-License-Identifier: Apache-2.0
#include "process/boot_clock.h"

#include <ctime>

#include "base/clock.h"
#include "pyrometer/abi/sampler.h"

namespace pyrometer {

BootClock BootClock::Now() {
  const MonotonicTime monotonic = MonotonicNow();
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const uint64_t boot_ns =
      static_cast<uint64_t>(boot.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(boot.tv_nsec);
  // Without suspension the difference is the time between the two calls, and would move every
  // derived start time by as much.
  constexpr uint64_t kNoise = 1'000'000;
  const uint64_t difference = boot_ns - monotonic.value();
  return BootClock(difference < kNoise ? 0 : difference);
}

StartTime BootClock::ToStartTime(MonotonicTime when) const {
  return StartTime((when.value() + suspended_ns_) / PYRO_CLOCK_TICK_NS);
}

}  // namespace pyrometer
