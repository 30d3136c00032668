// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace pyrometer {

// Waits under `mutex`, which the caller holds, until `holds()`, or by `clock` until `until`.
// absl::Mutex looks at the conditions of those who wait whenever it is let go. Thus a test that
// moves its clock, which wakes nobody, has only to make any call then that takes this mutex. It
// sleeps by the wall clock, which may be set back: so never for long.
template <typename Holds>
void AwaitUntil(absl::Mutex& mutex, const Clock& clock, MonotonicTime until, const Holds& holds)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  const auto is_over = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return holds() || clock.Now() >= until;
  };
  constexpr std::chrono::nanoseconds kLongestSleep = std::chrono::seconds(10);
  while (!is_over()) {
    const std::chrono::nanoseconds left = Between(clock.Now(), until);
    mutex.AwaitWithTimeout(absl::Condition(&is_over),
                           absl::FromChrono(std::min(left, kLongestSleep)));
  }
}

}  // namespace pyrometer
