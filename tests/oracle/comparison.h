// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind/unwinder.h"

namespace pyrometer::oracle {

enum class Verdict : uint8_t {
  kExact,      // all frames, and known to be all
  kUnsureEnd,  // all frames, but said to be cut
  kCut,        // the frames that there are are right; said to be cut
  kWrong,      // a frame that is not there, or missing frames that nobody speaks of
};

// The first frame of `truth` that `unwound` does not have; truth.size() if it has all of them.
size_t FirstDifference(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth);

// What the unwinder found beside what there is; leaf first, both not empty.
Verdict Compare(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth);

// False if `unwound` claims to be whole and lacks the outermost frame.
bool EndsHonestly(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth);

// The stack that `unwound` takes for the caller's, as it is once control is there. The code that
// leaves functions at once (longjmp, setcontext, the end of throwing an exception) has call frame
// information that leads to where it is going, and no longer to its caller. `by_return`: that is
// the return address of a call; else it is a landing pad. Of a stack of one frame: no frames.
UnwoundStack CallersOf(const UnwoundStack& unwound, bool by_return);

}  // namespace pyrometer::oracle
