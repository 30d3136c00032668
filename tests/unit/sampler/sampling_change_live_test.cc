// SPDX-License-Identifier: Apache-2.0
// Frequency and filter change while sampling.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

class SamplingChangeLive : public SamplerLive {
 protected:
  // Drains once more than `least` ticks were exported since the last time.
  Window DrainAfter(uint64_t least) {
    EXPECT_TRUE(WaitFor([&] { return windows().accounting().exported >= exported_ + least; }));
    return Drain();
  }
  Window Drain() {
    Result<Window> window = windows().Drain();
    EXPECT_TRUE(window.has_value());
    if (!window) return {};
    EXPECT_EQ(window->accounting.exported, TicksIn(*window));
    sum_ += window->accounting;
    exported_ += window->accounting.exported;
    return *std::move(window);
  }
  // The last of all.
  void ExpectNothingLost() {
    windows().Stop();
    Drain();
    EXPECT_EQ(sum_, windows().accounting());
    EXPECT_EQ(sum_.exported, sampler_->counters().drained_ticks);
    EXPECT_EQ(RunsOf(sampler_->tick_program_id()), sum_.Ticks());
  }
  void StartWith(const Sampler::Options& options) {
    sampler_ = LoadOrFail(WithoutColdSamples(options));
    ASSERT_TRUE(sampler_ && windows().Start());
  }
  WindowSource& windows() { return sampler_->windows(); }

  std::unique_ptr<Sampler> sampler_;
  Accounting sum_;
  uint64_t exported_ = 0;
};

bool IsOnly(const Window& window, const Child& child) {
  return std::ranges::all_of(
      window.samples, [&](const Sample& sample) { return sample.process.pid == child.pid(); });
}

TEST_F(SamplingChangeLive, LosesNoTickWhenFrequencyAndFilterChange) {
  const Child one;
  const Child two;
  Sampler::Options options{.frequency = {199}};
  options.filter.pids = {one.pid()};
  StartWith(options);
  for (int i = 0; i < 20; ++i) {
    const bool even = i % 2 == 0;
    SampleFilter next;
    next.pids = {even ? two.pid() : one.pid()};
    ASSERT_TRUE(windows().Prepare({.frequency = Hertz{even ? 997U : 199U}, .filter = next}));
    const Window window = DrainAfter(5);
    EXPECT_EQ(window.frequency, Hertz{even ? 199U : 997U});
    EXPECT_TRUE(IsOnly(window, even ? one : two));
    EXPECT_FALSE(window.samples.empty());
  }
  ExpectNothingLost();
}

TEST_F(SamplingChangeLive, CountsWhatIsDueByTheFrequencyOfEachWindow) {
  // Each clock is held against itself.
  struct Now {
    MonotonicTime monotonic = MonotonicNow();
    std::chrono::system_clock::time_point wall = std::chrono::system_clock::now();
    std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now();
  };
  StartWith({.frequency = {99}});
  for (const uint32_t next : {997U, 99U, 499U, 99U}) {
    const Now before_begin;
    Drain();
    const Now after_begin;
    SpinFor(milliseconds(300));
    ASSERT_TRUE(windows().Prepare({.frequency = Hertz{next}, .filter = {}}));
    const Now before_end;
    const Window window = Drain();
    const Now after_end;
    EXPECT_TRUE(before_begin.monotonic <= window.begin && window.begin <= after_begin.monotonic);
    EXPECT_TRUE(before_end.monotonic <= window.end && window.end <= after_end.monotonic);
    EXPECT_TRUE(before_begin.wall <= window.wall_begin && window.wall_begin <= after_begin.wall);
    EXPECT_TRUE(before_end.wall <= window.wall_end && window.wall_end <= after_end.wall);
    ExpectDue(window.accounting.Ticks() + window.accounting.undelivered,
              sampler_->counters().sampled_cpus, window.frequency,
              {.begin = before_begin.steady, .end = after_begin.steady},
              {.begin = before_end.steady, .end = after_end.steady});
  }
  ExpectNothingLost();
}

TEST_F(SamplingChangeLive, GoesFromEverythingToOneNameAndBack) {
  const Child named([] {
    prctl(PR_SET_NAME, "one-name");
    SpinFor(kForever);
  });
  StartWith({.frequency = {499}});
  SampleFilter by_name;
  by_name.comms = {"one-name"};
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = by_name}));
  EXPECT_EQ(DrainAfter(10).accounting.filtered, 0U);
  const Window only = DrainAfter(10);
  EXPECT_TRUE(IsOnly(only, named));
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = SampleFilter{}}));
  EXPECT_TRUE(IsOnly(Drain(), named));
  EXPECT_EQ(DrainAfter(10).accounting.filtered, 0U);
  ExpectNothingLost();
}

TEST_F(SamplingChangeLive, FollowsChildrenOfWhatIsWantedNowAndForgetsThoseOfBefore) {
  const Child other;
  const Child parent([] {
    while (true) waitpid(Fork([] { SpinFor(milliseconds(20)); }), nullptr, 0);
  });
  Sampler::Options options{.frequency = {999}};
  options.filter.pids = {other.pid()};
  StartWith(options);
  SampleFilter next;
  next.pids = {parent.pid()};
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = next}));
  EXPECT_TRUE(IsOnly(Drain(), other));
  // The parent sleeps: these are children, that were forked after the change.
  EXPECT_FALSE(DrainAfter(20).samples.empty());
  next.pids = {other.pid()};
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = next}));
  Drain();
  EXPECT_TRUE(IsOnly(DrainAfter(20), other));
  ExpectNothingLost();
}

TEST_F(SamplingChangeLive, WantsWhatIsForkedBetweenAChangeAndItsWindow) {
  const Child other;
  const Child parent([] {
    raise(SIGSTOP);
    Fork([] { SpinFor(kForever); });
    raise(SIGSTOP);
  });
  parent.AwaitStop();
  Sampler::Options options{.frequency = {499}};
  options.filter.pids = {other.pid()};
  StartWith(options);
  SampleFilter next;
  next.pids = {parent.pid()};
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = next}));
  parent.Continue();
  parent.AwaitStop();
  EXPECT_TRUE(IsOnly(Drain(), other));
  // The parent stands still: these are of its child.
  EXPECT_FALSE(DrainAfter(10).samples.empty());
  ExpectNothingLost();
}

TEST_F(SamplingChangeLive, WantsAProcessAfterOneOfItsThreadsHasEnded) {
  const Child child([] {
    raise(SIGSTOP);
    std::thread([] {}).join();
    SpinFor(kForever);
  });
  child.AwaitStop();
  Sampler::Options options{.frequency = {499}};
  options.filter.pids = {child.pid()};
  StartWith(options);
  child.Continue();
  // Joined is not yet ended for the kernel: what it takes for the end of all, it does before the
  // second of these.
  EXPECT_TRUE(IsOnly(DrainAfter(10), child));
  EXPECT_FALSE(DrainAfter(10).samples.empty());
  EXPECT_TRUE(windows().AnyWantedPid());
  ExpectNothingLost();
}

TEST_F(SamplingChangeLive, ReadsTheKernelsTypesOnlyOnce) {
  StartWith({.frequency = {99}});
  SampleFilter filter;
  filter.cgroups = {1};
  filter.cgroup_controller = "cpu";
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = filter}));
  const std::string nothing = testing::TempDir() + "/nothing_" + std::to_string(::getpid());
  ASSERT_TRUE(std::filesystem::create_directory(nothing));
  std::thread([&] {
    ASSERT_EQ(::unshare(CLONE_FS), 0);
    ASSERT_EQ(::chroot(nothing.c_str()), 0);
    EXPECT_TRUE(windows().Prepare({.frequency = {}, .filter = filter}).has_value());
    filter.cgroup_controller = "no such";
    const Result<void> refused = windows().Prepare({.frequency = {}, .filter = filter});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message(), "this kernel has no cgroup controller 'no such'");
  }).join();
  std::filesystem::remove(nothing);
}

TEST_F(SamplingChangeLive, KnowsWhenNobodyWantedIsLeft) {
  StartWith({.frequency = {99}});
  EXPECT_TRUE(windows().AnyWantedPid()) << "it wants everything";
  Child child;
  SampleFilter next;
  next.pids = {child.pid()};
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = next}));
  Drain();
  EXPECT_TRUE(windows().AnyWantedPid());
  child.End();
  EXPECT_TRUE(WaitFor([&] { return !windows().AnyWantedPid(); }));
}

TEST_F(SamplingChangeLive, KeepsWhatWasPreparedWhenAnotherChangeIsRefused) {
  const Child one;
  StartWith({.frequency = {499}});
  SampleFilter next;
  next.pids = {one.pid()};
  ASSERT_TRUE(windows().Prepare({.frequency = {}, .filter = next}));
  SampleFilter too_large;
  for (uint32_t pid = 1; pid < 40'000; ++pid) too_large.pids.emplace_back(4'000'000 + pid);
  const Result<void> refused = windows().Prepare({.frequency = Hertz{99}, .filter = too_large});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::kExhausted);
  EXPECT_FALSE(windows().Prepare({.frequency = Hertz{0}, .filter = {}}).has_value());
  Drain();
  const Window window = DrainAfter(10);
  EXPECT_EQ(window.frequency, Hertz{499});
  EXPECT_TRUE(IsOnly(window, one));
  ExpectNothingLost();
}

}  // namespace
}  // namespace pyrometer
