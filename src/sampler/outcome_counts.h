// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Reads what became of every tick. Any thread.
class OutcomeCounts {
 public:
  // `map_fd`: the map `outcomes`, which must outlive this.
  explicit OutcomeCounts(int map_fd) : map_fd_(map_fd) {}

  // The ticks that went to one half of the window maps since the programs were loaded; without
  // `undelivered`.
  Result<Accounting> OfHalf(uint32_t half) const;

 private:
  int map_fd_;
};

}  // namespace pyrometer
