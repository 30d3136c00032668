// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace pyrometer {

// Waits under `mutex`, which the caller holds, until `holds()`, or by `clock` until `until`.
// absl::Mutex looks at the conditions of those who wait whenever it is let go. Thus a test that
// moves its clock, which wakes nobody, has only to make any call then that takes this mutex. It
// sleeps by the wall clock: when that is set back meanwhile, it wakes late, unless somebody takes
// the mutex. Not for what must go on then, as sampling must.
template <typename Holds>
void AwaitUntil(absl::Mutex& mutex, const Clock& clock, MonotonicTime until, const Holds& holds)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  const auto is_over = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return holds() || clock.Now() >= until;
  };
  while (!is_over()) {
    mutex.AwaitWithTimeout(absl::Condition(&is_over),
                           absl::FromChrono(Between(clock.Now(), until)));
  }
}

}  // namespace pyrometer
