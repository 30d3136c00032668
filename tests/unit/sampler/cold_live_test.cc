// SPDX-License-Identifier: Apache-2.0
// What is left to user space.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

TEST_F(SamplerLive, ShipsWhatItCannotUnwind) {
  Child child;
  Sampler::Options options{.frequency = {199}};
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  EXPECT_TRUE(WaitFor([&] { return sampler->counters().cold.unknown_process >= 20; }));
  sampler->windows().Stop();
  child.End();
  uint64_t spinning = 0;
  const std::vector<ColdSample> samples = sampler->cold().Take();
  for (const ColdSample& sample : samples) {
    EXPECT_EQ(sample.process.pid, child.pid());
    EXPECT_GT(sample.exec_pages, 0U);
    EXPECT_FALSE(sample.stack.empty());
    // The stack holds a return address into SpinFor's caller, which lies in this test.
    spinning += LiesIn(Frame::User(sample.pc), &SpinFor) ? 1 : 0;
  }
  EXPECT_GE(samples.size(), 20U);
  EXPECT_GT(spinning, 0U);
}

TEST_F(SamplerLive, WakesWhoWaitsForColdSamples) {
  Sampler::Options options{.frequency = {199}};
  options.sizes.cold_bytes = 1 << 18;
  Child child;
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  size_t taken = 0;
  while (taken < 50) {
    sampler->cold().Wait(kForever);
    taken += sampler->cold().Take().size();
  }
}

TEST_F(SamplerLive, ShipsNoMoreThanItMay) {
  Sampler::Options options{.frequency = {999}};
  options.cold_per_second_of_process = 20;
  Child child;
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  EXPECT_TRUE(WaitFor([&] { return sampler->counters().cold.refused >= 100; }));
  sampler->windows().Stop();
  child.End();
  const Result<Window> window = sampler->windows().Drain();
  ASSERT_TRUE(window.has_value());
  uint64_t stayed = 0;
  for (const Sample& sample : window->samples) {
    const Stack& stack = window->stacks[sample.stack];
    if (stack.end == StackEnd::kNotReady) stayed += sample.count;
    EXPECT_TRUE(stack.end != StackEnd::kComplete) << "a stack that stops early says so";
  }
  EXPECT_EQ(stayed, sampler->counters().cold.refused);
}

// In the first half of each of the kernel side's seconds, or in the second.
void SpinInHalves(bool second) {
  const auto until = std::chrono::steady_clock::now() + kForever;
  while (std::chrono::steady_clock::now() < until) {
    const uint64_t half = (MonotonicNow().value() >> 29) & 1;
    if ((half != 0) == second) {
      SpinFor(std::chrono::milliseconds(1));
    } else {
      usleep(1000);
    }
  }
}

// Two processes use up what the machine may ship before a third begins.
TEST_F(SamplerLive, ShipsTheFewSamplesOfOneBesideTheManyOfOthers) {
  Child one([] { SpinInHalves(false); });
  Child other([] { SpinInHalves(false); });
  Child bystander([] { SpinInHalves(true); });
  Sampler::Options options{.frequency = {999}};
  options.cold_per_second = 64;
  options.filter.pids = {one.pid(), other.pid(), bystander.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  uint64_t shipped = 0;
  EXPECT_TRUE(WaitFor([&] {
    shipped += static_cast<uint64_t>(std::ranges::count_if(
        sampler->cold().Take(),
        [&](const ColdSample& sample) { return sample.process.pid == bystander.pid(); }));
    return shipped >= 8;
  }));
}

TEST_F(SamplerLive, RefusesWhatHasNoRoomInTheRing) {
  Sampler::Options options{.frequency = {999}};
  options.sizes.cold_bytes = 1 << 17;
  Child child;
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  EXPECT_TRUE(WaitFor([&] { return sampler->counters().cold.refused >= 20; }));
  sampler->windows().Stop();
  EXPECT_LE(sampler->counters().cold_bytes_waiting, options.sizes.cold_bytes);
  EXPECT_FALSE(sampler->cold().Take().empty()) << "what fits is shipped";
}

}  // namespace
}  // namespace pyrometer
