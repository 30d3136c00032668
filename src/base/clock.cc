// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

namespace pyrometer {

std::chrono::system_clock::time_point WallTimeOf(MonotonicTime when, const Clock& clock) {
  constexpr std::chrono::microseconds kUndisturbed(100);
  constexpr int kAttempts = 4;
  std::chrono::system_clock::time_point wall;
  MonotonicTime before;
  for (int i = 0; i < kAttempts; ++i) {
    before = clock.Now();
    wall = clock.WallNow();
    if (Between(before, clock.Now()) < kUndisturbed) break;
  }
  return wall - Between(when, before);
}

}  // namespace pyrometer
