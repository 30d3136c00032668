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

// Gives the frames of one kind their names. Owned by a Symbolizer and called by its thread.
class FrameNamer {
 public:
  virtual ~FrameNamer() = default;

  // True if a frame means something in its process only, like an address. Then Name() is called in
  // every window, and the namer remembers its locations; else each frame is named once.
  virtual bool IsPerProcess() const { return false; }

  // Called before the first frame of `window`: the ranges whose names may have changed since.
  virtual std::vector<FrameRange> BeginWindow(uint32_t /*window*/) { return {}; }

  // Never null: made up, and its reason counted, where there is no name. `process` is the one that
  // the frame was sampled in if IsPerProcess(), else nobody.
  virtual LocationRef Name(Frame frame, ProcessKey process, uint32_t window) = 0;

  // Forgets what no window since `unused_since` asked for.
  virtual void EndWindow(uint32_t unused_since) = 0;
};

}  // namespace pyrometer
