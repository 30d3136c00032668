// SPDX-License-Identifier: Apache-2.0
#include "symbolize/user_stacks.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace pyrometer {
namespace {

bool HasUserAddresses(const Window& window, const Stack& stack) {
  return std::ranges::any_of(window.FramesOf(stack),
                             [](Frame frame) { return frame.kind() == Frame::Kind::kUserAddress; });
}

// Appends a copy of stack `index` and of its frames.
uint32_t CopyStack(Window& window, uint32_t index) {
  Stack copy = window.stacks[index];
  const size_t first = copy.first_frame;
  const size_t count = size_t{copy.kernel_frames} + copy.user_frames;
  copy.first_frame = static_cast<uint32_t>(window.frames.size());
  for (size_t i = 0; i < count; ++i) window.frames.push_back(Frame(window.frames[first + i]));
  window.stacks.push_back(copy);
  return static_cast<uint32_t>(window.stacks.size() - 1);
}

}  // namespace

std::vector<std::optional<ProcessKey>> SeparateUserStacks(Window& window) {
  std::vector<bool> has_user_addresses;
  has_user_addresses.reserve(window.stacks.size());
  for (const Stack& stack : window.stacks) {
    has_user_addresses.push_back(HasUserAddresses(window, stack));
  }
  std::vector<std::optional<ProcessKey>> owners(window.stacks.size());
  absl::flat_hash_map<std::pair<uint32_t, ProcessKey>, uint32_t> copies;
  for (Sample& sample : window.samples) {
    if (!has_user_addresses[sample.stack]) continue;
    std::optional<ProcessKey>& owner = owners[sample.stack];
    if (!owner) owner = sample.process;
    if (*owner == sample.process) continue;
    const auto [copy, added] = copies.try_emplace({sample.stack, sample.process});
    if (added) {
      copy->second = CopyStack(window, sample.stack);
      owners.emplace_back(sample.process);
    }
    sample.stack = copy->second;
  }
  return owners;
}

}  // namespace pyrometer
