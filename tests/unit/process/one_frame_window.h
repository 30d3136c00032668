// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// One tick of a program, taken at `when`, whose stack is one user frame. The window ends there.
inline Window OneFrameWindow(const ProcessKey& process, ExecId exec, Frame frame,
                             MonotonicTime when) {
  Window window;
  window.end = when;
  window.frames = {frame};
  window.stacks = {Stack{0, 0, 1, StackEnd::kComplete}};
  Sample sample;
  sample.process = process;
  sample.exec = exec;
  sample.count = 1;
  sample.first_seen = when;
  sample.last_seen = when;
  window.samples = {sample};
  return window;
}

// What `window`, of one frame, has become.
inline Frame OnlyFrameOf(const Window& window) {
  return window.FramesOf(window.stacks[window.samples[0].stack])[0];
}

}  // namespace pyrometer
