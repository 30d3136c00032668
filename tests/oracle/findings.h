// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pyrometer::oracle {

// What a comparison of unwound stacks with the truth has come to.
struct Findings {
  uint64_t instructions = 0;  // executed
  uint64_t exact = 0;         // checks whose stacks were equal, frame by frame, to the root
  uint64_t ahead = 0;         // checks whose stacks were already where a longjmp was going to
  uint64_t unsure_end = 0;    // all frames, but said to be cut
  uint64_t cut = 0;           // the right frames, and a reason why there are no more
  uint64_t wrong = 0;
  // Not right beyond the function that was about to leave its callers for good, by a jump: throwing
  // an exception overwrites what they have saved before it leaves them. No check: there is no
  // truth.
  uint64_t leaving = 0;
  uint64_t trusted = 0;   // frames that were taken from the unwinder, where a window began
  uint64_t returned = 0;  // of them, those that were then returned to

  // Reason -> place of the frame that has no caller -> checks; of `cut` and `unsure_end`.
  std::map<std::string, std::map<std::string, uint64_t>> early;
  std::vector<std::string> examples;  // the first few of `wrong`, in full

  uint64_t checks() const { return exact + unsure_end + cut + wrong; }
  double ExactPercent() const {
    return checks() == 0 ? 0 : 100.0 * static_cast<double>(exact) / static_cast<double>(checks());
  }
};

// One line, the reasons with their most frequent places, and the examples.
std::string Report(std::string_view title, const Findings& findings);

}  // namespace pyrometer::oracle
