// SPDX-License-Identifier: Apache-2.0
// Every tick is accounted for.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
[[gnu::noinline]] void Left(uint32_t path, int depth);
[[gnu::noinline]] void Right(uint32_t path, int depth);
[[gnu::noinline]] void Branch(uint32_t path, int depth) {
  if (depth == 0) return SpinFor(milliseconds(1));
  (path & 1) != 0 ? Left(path >> 1, depth - 1) : Right(path >> 1, depth - 1);
  asm volatile("" ::: "memory");  // no tail call
}
void Left(uint32_t path, int depth) {
  Branch(path, depth);
  asm volatile("" ::: "memory");
}
void Right(uint32_t path, int depth) {
  Branch(path, depth);
  asm volatile("" ::: "memory");
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
      WithoutColdSamples({.frequency = {999}, .sizes = no_maps}),
      [] {
        for (uint32_t path = 0; path < 1500; ++path) Branch(path, 11);
      },
      [&](const ColdSample& sample) { elsewhere += sample.unwound ? 1 : 0; });
  EXPECT_EQ(books.TotalLost(), 0U);
  EXPECT_GT(books.exported, 8U);
  EXPECT_EQ(elsewhere, 0U);
}

// Walks deep stacks, none of which is like another, on each of `threads` threads for a CPU time,
// and begins when it is let go on. Where nobody else is sampled, that bounds how many samples there
// are, however busy the machine is and whenever they are drained.
std::unique_ptr<Child> DeepWalker(int threads, std::chrono::nanoseconds cpu_time) {
  const auto walk = [cpu_time](uint32_t first) {
    const auto used = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    };
    for (uint32_t path = first; used() < cpu_time; ++path) Branch(path, 80);
  };
  auto child = std::make_unique<Child>([threads, walk] {
    raise(SIGSTOP);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(walk, static_cast<uint32_t>(i) << 16);
    walk(0);
    for (std::thread& other : others) other.join();
  });
  child->AwaitStop();
  return child;
}

// An emulated CPU delivers few ticks, perhaps none in one round.
constexpr int kRounds = 20;

// At a rate that the maps hold little of. The ring has room for all samples of a round: 500 of some
// 1.8 KB.
TEST_F(SamplerLive, LosesNoStackToFullMaps) {
  const MapSizes tiny{.counts = 8,
                      .small_stacks = 4,
                      .medium_stacks = 4,
                      .large_stacks = 4,
                      .journal_bytes = kOneRecord};
  uint64_t unwound = 0;
  for (int round = 0; round < kRounds && unwound == 0; ++round) {
    const std::unique_ptr<Child> walker = DeepWalker(1, milliseconds(500));
    Sampler::Options options = WithoutColdSamples({.frequency = {999}, .sizes = tiny});
    options.filter.pids = {walker->pid()};
    const Accounting books = Record(
        options, [&] { walker->Finish(); },
        [&](const ColdSample& sample) {
          ASSERT_TRUE(sample.unwound.has_value());
          ++unwound;
          EXPECT_FALSE(sample.kernel_frames.empty() && sample.unwound->frames.empty());
        });
    EXPECT_EQ(books.TotalLost(), 0U);
  }
  EXPECT_GT(unwound, 0U);
}

// As on 42 CPUs at 99 Hz: the largest class is full after a fraction of each window. The ring has
// room for all samples of a round: 3,000 of some 1.8 KB.
TEST_F(SamplerLive, LosesNoTickOfDeepStacksAtFiveKilohertz) {
  const MapSizes small{
      .small_stacks = 256, .medium_stacks = 128, .large_stacks = 4, .cold_bytes = 8 << 20};
  uint64_t deep = 0;
  for (int round = 0; round < kRounds && deep == 0; ++round) {
    const std::unique_ptr<Child> walker = DeepWalker(2, milliseconds(300));
    Sampler::Options options = WithoutColdSamples({.frequency = {4999}, .sizes = small});
    options.filter.pids = {walker->pid()};
    const Accounting books = Record(
        options, [&] { walker->Finish(); },
        [&](const ColdSample& sample) { deep += sample.unwound->frames.size() > 128 ? 1 : 0; });
    EXPECT_EQ(books.TotalLost(), 0U);
  }
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
  const Accounting books = Record({.frequency = {999}, .sizes = tiny}, [] {
    for (uint32_t path = 0; path < 1500; ++path) Branch(path, 11);
  });
  EXPECT_GT(books.lost[Accounting::kStackMapFull], 0U);
  EXPECT_GT(books.exported, 0U);
}

TEST_F(SamplerLive, PutsStacksIntoALargerMapWhereTheirsIsFull) {
  const MapSizes tiny{.counts = 4096,
                      .small_stacks = 4,
                      .medium_stacks = 4,
                      .large_stacks = 4096,
                      .journal_bytes = kOneRecord};
  const Accounting books = Record({.frequency = {999}, .sizes = tiny}, [] {
    for (uint32_t path = 0; path < 1500; ++path) Branch(path, 11);
  });
  EXPECT_EQ(books.lost[Accounting::kStackMapFull], 0U);
  EXPECT_GT(books.exported, 8U);
}

TEST_F(SamplerLive, CountsWhatDoesNotFitIntoTheCountMap) {
  const MapSizes tiny{.counts = 4, .journal_bytes = kOneRecord, .cold_bytes = 4096};
  const Accounting books = Record({.frequency = {999}, .sizes = tiny}, [] {
    for (uint32_t path = 0; path < 1500; ++path) Branch(path, 11);
  });
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
