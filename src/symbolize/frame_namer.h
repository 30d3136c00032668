// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Frames from `first` to `last`, both included, in the order of their bits.
struct FrameRange {
  Frame first;
  Frame last;
};

// Names the frames of one kind. Owned by a Symbolizer and called on its thread.
class FrameNamer {
 public:
  virtual ~FrameNamer() = default;

  // True if a frame's meaning depends on its process, as with addresses. Then Name() is called in
  // every window, and the namer remembers its locations; else each frame is named once.
  virtual bool IsPerProcess() const { return false; }

  // Called before the first frame of `window`, which ends at `end`. Returns the ranges whose names
  // may have changed since the last one.
  virtual std::vector<FrameRange> BeginWindow(uint32_t /*window*/, MonotonicTime /*end*/) {
    return {};
  }

  // Called for each process of which the window has such frames, before the first Name() of the
  // window, if IsPerProcess(). Some of them may have been left out.
  virtual void Expect(ProcessKey /*process*/, uint32_t /*window*/) {}

  // Called before the first Name() of a stack, if IsPerProcess(): when it was last seen.
  virtual void At(MonotonicTime /*when*/) {}

  // Never returns null: a missing name is made up, and the reason counted. `process` is the one the
  // frame was sampled in if IsPerProcess(), else none.
  virtual LocationRef Name(Frame frame, ProcessKey process, uint32_t window) = 0;

  // Forgets what no window since `unused_since` has asked for.
  virtual void EndWindow(uint32_t unused_since) = 0;
};

}  // namespace pyrometer
