// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_time.h"

#include <time.h>

namespace pyrometer {

std::optional<std::chrono::nanoseconds> CpuTimeOf(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace pyrometer
