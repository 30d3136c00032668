// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unwind/unwinder.h"

namespace pyrometer {

// Wraps a view and answers as long as the budget lasts. After that everything is unknown, which
// ends whatever is being tried.
class BudgetedView : public UnwindView {
 public:
  // Both must outlive it.
  BudgetedView(UnwindView& view, const UnwindBudget& budget);

  Found Find(Address pc) override;
  bool Read(Address address, std::span<std::byte> out) override;
  bool ReadCode(Address address, std::span<std::byte> out) override;
  bool IsCodeLate() const override { return view_.IsCodeLate(); }

  // Takes this many steps from the budget; false if there are too few left.
  bool Spend(size_t steps);

  // True once the budget was exceeded.
  bool exhausted() const { return exhausted_; }

 private:
  static constexpr size_t kStepsPerLook = 64;

  UnwindView& view_;
  const UnwindBudget& budget_;
  const MonotonicTime start_;
  size_t steps_ = 0;
  size_t next_look_ = kStepsPerLook;  // at the clock
  bool exhausted_ = false;
};

}  // namespace pyrometer
