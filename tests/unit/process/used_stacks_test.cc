// SPDX-License-Identifier: Apache-2.0
#include "process/used_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace pyrometer {
namespace {

using testing::ElementsAre;

Frame FrameAt(uint64_t address) {
  return Frame::User(Address(address));
}

// A stack for each vector of addresses, a sample of each stack in `used`.
Window WindowOf(const std::vector<std::vector<uint64_t>>& stacks, std::vector<uint32_t> used) {
  Window window;
  for (const std::vector<uint64_t>& addresses : stacks) {
    window.stacks.push_back({.first_frame = static_cast<uint32_t>(window.frames.size()),
                             .kernel_frames = 1,
                             .user_frames = static_cast<uint16_t>(addresses.size() - 1)});
    for (const uint64_t address : addresses) window.frames.push_back(FrameAt(address));
  }
  for (const uint32_t stack : used) {
    Sample sample;
    sample.stack = stack;
    window.samples.push_back(sample);
  }
  return window;
}

std::vector<Frame> FramesOfSample(const Window& window, size_t sample) {
  const auto frames = window.FramesOf(window.stacks[window.samples[sample].stack]);
  return {frames.begin(), frames.end()};
}

TEST(KeepUsedStacks, RemovesWhatNoSampleHas) {
  Window window = WindowOf({{1, 2}, {3}, {4, 5, 6}, {7}}, {2, 0, 2});
  KeepUsedStacks(window);
  EXPECT_EQ(window.stacks.size(), 2U);
  EXPECT_EQ(window.frames.size(), 5U);
  EXPECT_THAT(FramesOfSample(window, 0), ElementsAre(FrameAt(4), FrameAt(5), FrameAt(6)));
  EXPECT_THAT(FramesOfSample(window, 1), ElementsAre(FrameAt(1), FrameAt(2)));
  EXPECT_EQ(window.samples[2].stack, window.samples[0].stack);
}

TEST(KeepUsedStacks, LeavesAWindowWithoutSamplesEmpty) {
  Window window = WindowOf({{1, 2}, {3}}, {});
  KeepUsedStacks(window);
  EXPECT_TRUE(window.stacks.empty());
  EXPECT_TRUE(window.frames.empty());
}

}  // namespace
}  // namespace pyrometer
