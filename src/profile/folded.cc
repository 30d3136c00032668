// SPDX-License-Identifier: Apache-2.0
#include "profile/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "profile/shown_stacks.h"

namespace pyrometer {
namespace {

// Leaves nothing but the text of the frame, so that lines are equal exactly if their stacks are.
void ToText(ShownFrame& frame) {
  std::replace(frame.name.begin(), frame.name.end(), ';', ':');
  if (frame.kind == ShownFrame::Kind::kKernel) frame.name += "_[k]";
  frame = ShownFrame{.name = std::move(frame.name), .object = {}};
}

}  // namespace

std::string EncodeFolded(const Profile& profile) {
  const ShownStacks shown(profile, ToText);
  std::string text;
  for (const ShownStacks::Stack& stack : shown.stacks()) {
    const char* separator = "";
    for (const uint32_t id : shown.FramesOf(stack)) {
      text.append(separator).append(shown.frames()[id].name);
      separator = ";";
    }
    fmt::format_to(std::back_inserter(text), " {}\n", stack.samples);
  }
  return text;
}

}  // namespace pyrometer
