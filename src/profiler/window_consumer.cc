// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_consumer.h"

#include <utility>

namespace pyrometer {

void Delivery::TakeOver(const Delivery& dropped) {
  ends_period |= dropped.ends_period;
  missed += dropped.missed;
  missed += Missed(dropped.window->window);
}

Accounting Missed(const Window& window) {
  Accounting missed = window.accounting;
  missed.lost[Accounting::kWindowDropped] += std::exchange(missed.exported, 0);
  return missed;
}

}  // namespace pyrometer
