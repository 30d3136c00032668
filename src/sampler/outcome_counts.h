// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Reads what became of every tick, and what ticks cost. Any thread.
class OutcomeCounts {
 public:
  // The maps `outcomes` and `tick_time`, which must outlive this.
  OutcomeCounts(int outcomes_fd, int time_fd) : outcomes_fd_(outcomes_fd), time_fd_(time_fd) {}

  // The ticks that went to one half of the window maps since the programs were loaded; without
  // `undelivered`.
  Result<Accounting> OfHalf(uint32_t half) const;

  // The CPU time of all ticks but the idle ones since the programs were loaded.
  Result<std::chrono::nanoseconds> Time() const;

 private:
  int outcomes_fd_;
  int time_fd_;
};

}  // namespace pyrometer
