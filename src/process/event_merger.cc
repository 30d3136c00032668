// SPDX-License-Identifier: Apache-2.0
#include "process/event_merger.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyrometer {

std::vector<ProcessEvent> EventMerger::Release(MonotonicTime horizon) {
  const auto is_earlier = [](const ProcessEvent& a, const ProcessEvent& b) {
    return When(a) < When(b);
  };
  // Stable: events of one ring with equal times stay in the ring's order. Most bursts are of one
  // CPU and in order, and sorting takes memory.
  if (!std::is_sorted(pending_.begin(), pending_.end(), is_earlier)) {
    std::stable_sort(pending_.begin(), pending_.end(), is_earlier);
  }
  const auto end = std::partition_point(pending_.begin(), pending_.end(),
                                        [&](const ProcessEvent& e) { return When(e) <= horizon; });
  std::vector<ProcessEvent> released(std::make_move_iterator(pending_.begin()),
                                     std::make_move_iterator(end));
  pending_.erase(pending_.begin(), end);
  for (const ProcessEvent& event : released) {
    if (When(event) < released_) ++late_;
  }
  if (!released.empty()) released_ = std::max(released_, When(released.back()));
  return released;
}

}  // namespace pyrometer
