// SPDX-License-Identifier: Apache-2.0
#include "agent/cpu_budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pyrometer {

std::optional<Hertz> CpuBudget::Look(double share) {
  frugal_ = share < most_ / 2 ? frugal_ + 1 : 0;
  sum_ += share;
  if (++looks_ < kLooksDown) return std::nullopt;
  share_ = std::exchange(sum_, 0) / std::exchange(looks_, 0);
  // A little lower than the proportion says, so that one correction is enough.
  if (share_ > most_) return Set(now_.value * (most_ / share_) * 0.9);
  if (frugal_ >= kLooksUp) {
    frugal_ = 0;
    return Set(now_.value * 1.5);
  }
  return std::nullopt;
}

std::optional<Hertz> CpuBudget::Set(double hertz) {
  const auto least = std::min(kLeast.value, wanted_.value);
  const auto rounded = static_cast<decltype(wanted_.value)>(std::lround(hertz));
  const Hertz next{std::clamp(rounded, least, wanted_.value)};
  if (next == now_) return std::nullopt;
  now_ = next;
  return next;
}

}  // namespace pyrometer
