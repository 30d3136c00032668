// SPDX-License-Identifier: Apache-2.0
// Every tick is accounted for.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/sampler/fresh_memory.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST_F(SamplerLive, AccountsForEveryRunWithTwoBusyProcesses) {
  const Accounting books = Record({.frequency = {999}}, [] {
    const pid_t one = Fork([] { SpinFor(milliseconds(1500)); });
    const pid_t two = Fork([] { SpinFor(milliseconds(1500)); });
    waitpid(one, nullptr, 0);
    waitpid(two, nullptr, 0);
  });
  EXPECT_GT(books.exported, 0U);
  EXPECT_EQ(books.TotalLost(), 0U);
}

TEST_F(SamplerLive, AccountsForEveryRunWithTwoHundredShortProcesses) {
  const Accounting books = Record({.frequency = {999}}, [] {
    for (int i = 0; i < 200; ++i) {
      waitpid(Fork([] { SpinFor(milliseconds(5)); }), nullptr, 0);
    }
  });
  EXPECT_GT(books.exported, 0U);
  EXPECT_EQ(books.TotalLost(), 0U);
}

TEST_F(SamplerLive, AccountsForEveryRunWithThreadsThatMigrate) {
  const Accounting books = Record({.frequency = {999}}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) {
          cpu_set_t one;
          CPU_ZERO(&one);
          CPU_SET((t + i) % static_cast<int>(std::thread::hardware_concurrency()), &one);
          sched_setaffinity(0, sizeof(one), &one);
          SpinFor(milliseconds(3));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_GT(books.exported, 0U);
}

// Two thousand different call chains: each bit of `path` decides which of two functions calls on.
using Leaf = std::function<void()>;
[[gnu::noinline]] void Left(uint32_t path, int depth, const Leaf& leaf);
[[gnu::noinline]] void Right(uint32_t path, int depth, const Leaf& leaf);
[[gnu::noinline]] void Branch(uint32_t path, int depth, const Leaf& leaf) {
  if (depth == 0) return leaf();
  (path & 1) != 0 ? Left(path >> 1, depth - 1, leaf) : Right(path >> 1, depth - 1, leaf);
  asm volatile("" ::: "memory");  // no tail call
}
void Left(uint32_t path, int depth, const Leaf& leaf) {
  Branch(path, depth, leaf);
  asm volatile("" ::: "memory");
}
void Right(uint32_t path, int depth, const Leaf& leaf) {
  Branch(path, depth, leaf);
  asm volatile("" ::: "memory");
}

void SpinAtTheEndsOf(uint32_t paths, int depth) {
  for (uint32_t path = 0; path < paths; ++path) {
    Branch(path, depth, [] { SpinFor(milliseconds(1)); });
  }
}

// Which then hold as good as nothing.
constexpr uint32_t kOneRecord = PYRO_JOURNAL_MIN_BYTES;

TEST_F(SamplerLive, PutsSamplesIntoJournalsFirst) {
  const MapSizes no_maps{.counts = 4,
                         .small_stacks = 4,
                         .medium_stacks = 4,
                         .large_stacks = 4,
                         .journal_bytes = 1 << 20,
                         .cold_bytes = 4096};
  uint64_t elsewhere = 0;
  const Accounting books = Record(
      WithoutColdSamples({.frequency = {999}, .sizes = no_maps}), [] { SpinAtTheEndsOf(1500, 11); },
      [&](const ColdSample& sample) { elsewhere += sample.unwound ? 1 : 0; });
  EXPECT_EQ(books.TotalLost(), 0U);
  EXPECT_GT(books.exported, 8U);
  EXPECT_EQ(elsewhere, 0U);
}

// A process that stops itself, and then has a page fault in each of that many deep stacks, on each
// of `threads` threads: none is like another. So we know how many samples there are, however fast
// they come and whenever they are drained.
std::unique_ptr<Child> DeepFaults(uint32_t threads, uint32_t stacks) {
  const auto fault = [stacks](uint32_t first) {
    FreshMemory memory(stacks);
    for (uint32_t path = first; path < first + stacks; ++path) {
      Branch(path, 80, [&] { memory.TouchNext(); });
    }
  };
  auto child = std::make_unique<Child>([threads, stacks, fault] {
    raise(SIGSTOP);
    std::vector<std::jthread> others;
    for (uint32_t i = 1; i < threads; ++i) {
      others.emplace_back([fault, first = i * stacks] { fault(first); });
    }
    fault(0);
  });
  child->AwaitStop();
  return child;
}

Sampler::Options FaultsOf(const Child& child, const MapSizes& sizes) {
  Sampler::Options options = WithoutColdSamples({.sizes = sizes});
  options.event = {.kind = EventKind::kPageFaults, .period = 1};
  options.filter.pids = {child.pid()};
  return options;
}

// Of 1.8 KB each, so that the ring has room for all of them.
TEST_F(SamplerLive, LosesNoStackToFullMaps) {
  constexpr uint32_t kStacks = 500;
  const MapSizes tiny{.counts = 8,
                      .small_stacks = 4,
                      .medium_stacks = 4,
                      .large_stacks = 4,
                      .journal_bytes = kOneRecord};
  const std::unique_ptr<Child> child = DeepFaults(1, kStacks);
  uint64_t unwound = 0;
  const Accounting books = Record(
      FaultsOf(*child, tiny), [&] { child->Finish(); },
      [&](const ColdSample& sample) {
        ASSERT_TRUE(sample.unwound.has_value());
        ++unwound;
        EXPECT_FALSE(sample.kernel_frames.empty() && sample.unwound->frames.empty());
      });
  EXPECT_EQ(books.TotalLost(), 0U);
  EXPECT_GE(books.exported, kStacks);
  EXPECT_GT(unwound, 0U);
}

// As on 42 CPUs at 99 Hz: the largest class is full after a fraction of each window.
TEST_F(SamplerLive, LosesNoneOfManyDeepStacks) {
  constexpr uint32_t kStacks = 1500;
  const MapSizes small{
      .small_stacks = 256, .medium_stacks = 128, .large_stacks = 4, .cold_bytes = 8 << 20};
  const std::unique_ptr<Child> child = DeepFaults(2, kStacks);
  uint64_t deep = 0;
  const Accounting books = Record(
      FaultsOf(*child, small), [&] { child->Finish(); },
      [&](const ColdSample& sample) { deep += sample.unwound->frames.size() > 128 ? 1 : 0; });
  EXPECT_EQ(books.TotalLost(), 0U);
  EXPECT_GE(books.exported, 2 * kStacks);
  EXPECT_GT(deep, 0U) << "the largest class was not full";
}

// What fits into no map goes through the ring, unless that is full.
TEST_F(SamplerLive, CountsWhatDoesNotFitIntoTheStackMaps) {
  const MapSizes tiny{.counts = 4096,
                      .small_stacks = 4,
                      .medium_stacks = 4,
                      .large_stacks = 4,
                      .journal_bytes = kOneRecord,
                      .cold_bytes = 4096};
  const Accounting books =
      Record({.frequency = {999}, .sizes = tiny}, [] { SpinAtTheEndsOf(1500, 11); });
  EXPECT_GT(books.lost[Accounting::kStackMapFull], 0U);
  EXPECT_GT(books.exported, 0U);
}

TEST_F(SamplerLive, PutsStacksIntoALargerMapWhereTheirsIsFull) {
  const MapSizes tiny{.counts = 4096,
                      .small_stacks = 4,
                      .medium_stacks = 4,
                      .large_stacks = 4096,
                      .journal_bytes = kOneRecord};
  const Accounting books =
      Record({.frequency = {999}, .sizes = tiny}, [] { SpinAtTheEndsOf(1500, 11); });
  EXPECT_EQ(books.lost[Accounting::kStackMapFull], 0U);
  EXPECT_GT(books.exported, 8U);
}

TEST_F(SamplerLive, CountsWhatDoesNotFitIntoTheCountMap) {
  const MapSizes tiny{.counts = 4, .journal_bytes = kOneRecord, .cold_bytes = 4096};
  const Accounting books =
      Record({.frequency = {999}, .sizes = tiny}, [] { SpinAtTheEndsOf(1500, 11); });
  EXPECT_GT(books.lost[Accounting::kCountMapFull], 0U);
}

TEST_F(SamplerLive, FollowsCpusThatComeAndGo) {
  const std::string sys = testing::TempDir() + "/sampler_live_" + std::to_string(getpid());
  const std::string directory = sys + "/devices/system/cpu";
  std::filesystem::create_directories(directory);
  const auto set_online = [&](const char* list) { std::ofstream(directory + "/online") << list; };
  // How many CPUs the ticks that come due in a while are worth.
  const auto expect_cpus = [](Sampler& sampler, uint64_t cpus) {
    const auto due = [&] {
      Reading reading{.begin = steady_clock::now(), .end = {}};
      const Accounting books = sampler.windows().accounting();
      reading.end = steady_clock::now();
      return std::pair(books.Ticks() + books.undelivered, reading);
    };
    const auto [first, first_read] = due();
    SpinFor(milliseconds(300));
    const auto [last, last_read] = due();
    ExpectDue(last - first, cpus, Hertz{999}, first_read, last_read);
  };
  set_online("0\n");
  Sampler::Options options = WithoutColdSamples({.frequency = {999}});
  options.procfs.sys = sys;
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  expect_cpus(*sampler, 1);
  if (std::thread::hardware_concurrency() > 1) {
    set_online("0-1\n");
    ASSERT_TRUE(sampler->windows().FollowCpus().has_value());
    expect_cpus(*sampler, 2);
    set_online("1\n");
    ASSERT_TRUE(sampler->windows().FollowCpus().has_value());
    expect_cpus(*sampler, 1);
  }
  sampler->windows().Stop();
  EXPECT_EQ(RunsOf(sampler->tick_program_id()), sampler->windows().accounting().Ticks());
  std::filesystem::remove_all(sys);
}

TEST_F(SamplerLive, SamplesTheOtherCpusWhenOneCannotBe) {
  const std::string sys = testing::TempDir() + "/sampler_live_" + std::to_string(getpid());
  const std::string directory = sys + "/devices/system/cpu";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/online") << "0,4095\n";
  Sampler::Options options = WithoutColdSamples({.frequency = {99}});
  options.procfs.sys = sys;
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler);
  EXPECT_TRUE(sampler->windows().Start().has_value());
  EXPECT_EQ(sampler->counters().sampled_cpus, 1U);
  EXPECT_EQ(sampler->counters().cpu_failures, 1U);
  EXPECT_TRUE(sampler->windows().FollowCpus().has_value());
  EXPECT_EQ(sampler->counters().cpu_failures, 2U) << "it is tried again";
  std::filesystem::remove_all(sys);
}

}  // namespace
}  // namespace pyrometer
