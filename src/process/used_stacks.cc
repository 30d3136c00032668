// SPDX-License-Identifier: Apache-2.0
#include "process/used_stacks.h"

#include <span>
#include <utility>
#include <vector>

namespace pyrometer {

void KeepUsedStacks(Window& window) {
  std::vector<bool> is_used(window.stacks.size());
  for (const Sample& sample : window.samples) is_used[sample.stack] = true;
  std::vector<uint32_t> places(window.stacks.size());  // of those that are used
  std::vector<Stack> stacks;
  std::vector<Frame> frames;
  for (size_t i = 0; i < window.stacks.size(); ++i) {
    if (!is_used[i]) continue;
    places[i] = static_cast<uint32_t>(stacks.size());
    const std::span<const Frame> own = window.FramesOf(window.stacks[i]);
    stacks.push_back(window.stacks[i]);
    stacks.back().first_frame = static_cast<uint32_t>(frames.size());
    frames.insert(frames.end(), own.begin(), own.end());
  }
  for (Sample& sample : window.samples) sample.stack = places[sample.stack];
  window.stacks = std::move(stacks);
  window.frames = std::move(frames);
}

}  // namespace pyrometer
