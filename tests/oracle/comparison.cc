// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/comparison.h"

#include <algorithm>

namespace pyrometer::oracle {

size_t FirstDifference(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth) {
  const auto differing =
      std::mismatch(truth.begin(), truth.end(), unwound.frames.begin(), unwound.frames.end());
  return static_cast<size_t>(differing.first - truth.begin());
}

Verdict Compare(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth) {
  const size_t right = FirstDifference(unwound, truth);
  if (right != unwound.frames.size()) return Verdict::kWrong;
  const bool all = right == truth.size();
  if (IsCut(unwound.end)) return all ? Verdict::kUnsureEnd : Verdict::kCut;
  return all && unwound.end == StackEnd::kComplete ? Verdict::kExact : Verdict::kWrong;
}

bool EndsHonestly(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth) {
  return IsCut(unwound.end) || unwound.frames.back() == truth.back();
}

UnwoundStack CallersOf(const UnwoundStack& unwound, bool by_return) {
  UnwoundStack callers{{unwound.frames.begin() + 1, unwound.frames.end()}, unwound.end};
  if (by_return && !callers.frames.empty()) {
    callers.frames[0].pc = Address(callers.frames[0].pc.value() + 1);
  }
  return callers;
}

}  // namespace pyrometer::oracle
