// SPDX-License-Identifier: Apache-2.0
#include "unwind/budgeted_view.h"

namespace pyrometer {

BudgetedView::BudgetedView(UnwindView& view, const UnwindBudget& budget)
    : view_(view), budget_(budget), start_(budget.now ? budget.now() : MonotonicTime()) {}

bool BudgetedView::Spend(size_t steps) {
  if (exhausted_) return false;
  exhausted_ = steps > budget_.most_steps - steps_;
  if (exhausted_) return false;
  steps_ += steps;
  if (!budget_.now || steps_ < next_look_) return true;
  next_look_ = steps_ + kStepsPerLook;
  const std::chrono::nanoseconds taken(budget_.now().value() - start_.value());
  exhausted_ = taken > budget_.most_time;
  return !exhausted_;
}

UnwindView::Found BudgetedView::Find(Address pc) {
  if (Spend(1)) return view_.Find(pc);
  return {.place = Place::kUnknown, .table = nullptr, .rule = nullptr};
}

bool BudgetedView::Read(Address address, std::span<std::byte> out) {
  return Spend(1) && view_.Read(address, out);
}

bool BudgetedView::ReadCode(Address address, std::span<std::byte> out) {
  return Spend(1) && view_.ReadCode(address, out);
}

}  // namespace pyrometer
