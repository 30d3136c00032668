// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "pyrometer/ids.h"

namespace pyrometer {

// Decides the frequency at which the agent stays within its share of the CPUs. What it uses depends
// on the machine (new processes, distinct stacks) as well as on the frequency, so it is measured
// and corrected: down as soon as six looks in a row are over the budget on average, up again by
// half after thirty that took less than half of it. Thread-compatible.
class CpuBudget {
 public:
  static constexpr Hertz kLeast{9};  // below that a profile says nothing
  static constexpr unsigned kLooksDown = 6;
  static constexpr unsigned kLooksUp = 30;

  // `most`: a share of one CPU. REQUIRES: more than 0.
  CpuBudget(Hertz wanted, double most) : wanted_(wanted), most_(most), now_(wanted) {}

  // What was used of one CPU since the look before. Returns the new frequency if it is to change.
  std::optional<Hertz> Look(double share);

  Hertz now() const { return now_; }
  Hertz wanted() const { return wanted_; }
  double most() const { return most_; }
  // What the last full six looks used on average.
  double share() const { return share_; }
  // The lowest frequency, and still over the budget.
  bool over() const { return share_ > most_ && now_ <= kLeast; }

 private:
  std::optional<Hertz> Set(double hertz);

  Hertz wanted_;
  double most_;
  Hertz now_;
  double share_ = 0;
  double sum_ = 0;
  unsigned looks_ = 0;
  unsigned frugal_ = 0;  // looks in a row that used less than half
};

}  // namespace pyrometer
