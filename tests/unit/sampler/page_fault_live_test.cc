// SPDX-License-Identifier: Apache-2.0
// A counted event: page faults, of which we know how many there are.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/sampler/fresh_memory.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

constexpr size_t kPages = 2000;

Sampler::Options PageFaults(uint64_t period = 1) {
  Sampler::Options options;
  options.event = {.kind = EventKind::kPageFaults, .period = period};
  return options;
}

uint64_t Switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
}

class PageFaultLive : public SamplerLive {
 protected:
  // The samples of FreshMemory::Touch() in a window of which every tick is in the books.
  uint64_t SamplesOfTouch(const Window& window) {
    EXPECT_EQ(window.accounting.exported, TicksIn(window));
    EXPECT_EQ(window.accounting.TotalLost(), 0U);
    uint64_t samples = 0;
    for (const Sample& sample : window.samples) {
      EXPECT_EQ(sample.event, EventKind::kPageFaults);
      const Stack& stack = window.stacks[sample.stack];
      const auto user = window.FramesOf(stack).subspan(stack.kernel_frames);
      if (user.empty() || !LiesIn(user[0], &FreshMemory::Touch)) continue;
      EXPECT_EQ(stack.kernel_frames, 0) << "the fault is the program's own";
      samples += sample.count;
    }
    return samples;
  }
};

TEST_F(PageFaultLive, HasASampleForEveryFault) {
  Sampler::Options options = WithoutColdSamples(PageFaults());
  options.filter.pids = {Pid(static_cast<uint32_t>(getpid()))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  FreshMemory(1).TouchAll();  // and its code is there
  FreshMemory memory(kPages);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  memory.TouchAll();
  sampler->windows().Stop();
  const Result<Window> window = sampler->windows().Drain();
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(SamplesOfTouch(*window), kPages);
  EXPECT_EQ(window->event, options.event);
  EXPECT_EQ(window->frequency, Hertz{});
  const Accounting books = sampler->windows().accounting();
  EXPECT_EQ(books.undelivered, 0U);
  EXPECT_EQ(RunsOf(sampler->tick_program_id()), books.Ticks());
}

// A CPU counts the faults of all its tasks. Of those that follow each other undisturbed every tenth
// is sampled, and others come between them only where our thread leaves its CPU.
TEST_F(PageFaultLive, HasASampleForEverySoManyFaults) {
  constexpr uint64_t kPeriod = 10;
  const std::unique_ptr<Sampler> sampler = LoadOrFail(WithoutColdSamples(PageFaults(kPeriod)));
  FreshMemory(1).TouchAll();
  FreshMemory memory(kPages);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const uint64_t before = Switches();
  memory.TouchAll();
  const auto runs = static_cast<int64_t>(Switches() - before + 1);
  sampler->windows().Stop();
  const Result<Window> window = sampler->windows().Drain();
  ASSERT_TRUE(window.has_value());
  const auto samples = static_cast<int64_t>(SamplesOfTouch(*window));
  EXPECT_LT(std::abs(samples - static_cast<int64_t>(kPages / kPeriod)), runs);
  EXPECT_EQ(window->event.period, kPeriod);
}

TEST_F(PageFaultLive, AccountsForEachOfAFewThatComeAllAtOnce) {
  const Accounting books = Record(PageFaults(), [] {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] { FreshMemory(kPages).TouchAll(); });
    }
  });
  EXPECT_GE(books.Ticks(), 4 * kPages);
  EXPECT_EQ(books.undelivered, 0U);
}

TEST_F(PageFaultLive, ShipsWhatItCannotUnwindAsPageFaults) {
  Sampler::Options options = PageFaults();
  options.filter.pids = {Pid(static_cast<uint32_t>(getpid()))};
  uint64_t shipped = 0;
  Record(
      options, [] { FreshMemory(100).TouchAll(); },
      [&](const ColdSample& sample) {
        EXPECT_EQ(sample.event, EventKind::kPageFaults);
        ++shipped;
      });
  EXPECT_GT(shipped, 0U);  // the others, where the ring is full
}

TEST_F(PageFaultLive, HasNoFrequencyToChange) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail(PageFaults());
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const Result<void> changed =
      sampler->windows().Prepare({.frequency = Hertz{49}, .filter = std::nullopt});
  ASSERT_FALSE(changed.has_value());
  EXPECT_EQ(changed.error().code(), ErrorCode::kInvalid);
  EXPECT_FALSE(sampler->windows().HasLeftover());
  // How fast the maps fill up nobody knows: they are looked at as often as may be.
  EXPECT_EQ(sampler->windows().TimeUntilNearlyFull(), std::chrono::nanoseconds(0));
}

}  // namespace
}  // namespace pyrometer
