// SPDX-License-Identifier: Apache-2.0
// What the kernel side is told of processes, and what it tells.
#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

// The keys in the latest map of this name that the kernel has.
std::vector<uint32_t> KeysOf(std::string_view name) {
  std::vector<uint32_t> keys;
  for (uint32_t id = 0; bpf_map_get_next_id(id, &id) == 0;) {
    const UniqueFd map(bpf_map_get_fd_by_id(id));
    bpf_map_info info{};
    uint32_t size = sizeof(info);
    if (bpf_obj_get_info_by_fd(map.get(), &info, &size) != 0 || info.name != name) continue;
    keys.clear();
    uint32_t key = 0;
    for (const uint32_t* from = nullptr; bpf_map_get_next_key(map.get(), from, &key) == 0;) {
      keys.push_back(key);
      from = &key;
    }
  }
  return keys;
}

TEST_F(SamplerLive, TakesAStartTimeThatIsATickLate) {
  const Child child;
  Sampler::Options options{.frequency = {999}};
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const ColdSample sample = FirstColdSampleOf(child.pid(), *sampler);
  const PublishedMapping all{.mapping = {Address(0x1000), Address(0x7fff'ffff'f000), {}, 0}};
  const auto publish = [&](int64_t ticks_late) {
    ProcessKey process = sample.process;
    process.start_time = StartTime(process.start_time.value() + static_cast<uint64_t>(ticks_late));
    sampler->mappings().Publish(process, sample.exec, {.count = sample.exec_pages, .slack = 0},
                                std::span(&all, 1));
  };
  const auto is_refused = [&] {
    const uint64_t refused = sampler->counters().cold.unknown_process;
    return WaitFor([&] { return sampler->counters().cold.unknown_process > refused + 2; });
  };
  publish(2);
  EXPECT_TRUE(is_refused());
  publish(-1);
  EXPECT_TRUE(is_refused());
  for (const int64_t late : {1, 0}) {
    publish(late);
    const Accounting before = sampler->windows().accounting();
    const uint64_t refused = sampler->counters().cold.unknown_process;
    EXPECT_TRUE(
        WaitFor([&] { return sampler->windows().accounting().exported > before.exported + 20; }));
    EXPECT_LE(sampler->counters().cold.unknown_process, refused + 1) << "one tick may have begun";
  }
}

TEST_F(SamplerLive, TakesAsManyExecutablePagesMoreOrLessAsTheSlackAllows) {
  const Child child;
  Sampler::Options options{.frequency = {999}};
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const ColdSample sample = FirstColdSampleOf(child.pid(), *sampler);
  PublishedMapping all{.mapping = {Address(0x1000), Address(0x7fff'ffff'f000), {}, 0}};
  const auto publish = [&](uint64_t count, uint64_t slack) {
    sampler->mappings().Publish(sample.process, sample.exec, {.count = count, .slack = slack},
                                std::span(&all, 1));
  };
  const auto cold = [&] { return sampler->counters().cold; };
  const auto samples = [&] { return sampler->windows().accounting().exported; };
  for (const uint64_t count : {sample.exec_pages - 3, sample.exec_pages + 3}) {
    publish(count, 2);
    const uint64_t refused = cold().unknown_process;
    EXPECT_TRUE(WaitFor([&] { return cold().unknown_process > refused + 2; }));
  }
  for (const uint64_t count : {sample.exec_pages - 2, sample.exec_pages + 2}) {
    publish(count, 2);
    const uint64_t before = samples();
    const uint64_t refused = cold().unknown_process;
    EXPECT_TRUE(WaitFor([&] { return samples() > before + 20; }));
    EXPECT_LE(cold().unknown_process, refused + 1) << "one tick may have begun";
  }
  // What is in no known mapping may be code that was made since.
  all.mapping.end = Address(0x2000);
  publish(sample.exec_pages + 1, 2);
  const uint64_t unknown = cold().unknown_place;
  EXPECT_TRUE(WaitFor([&] { return cold().unknown_place > unknown + 2; }));
}

TEST_F(SamplerLive, GivesAChildWhatIsKnownOfItsParentAndOfNoEarlierProcess) {
  const pid_t parent = Fork([] {
    while (true) {
      const pid_t child = Fork([] { SpinFor(milliseconds(20)); });
      SpinFor(milliseconds(5));
      waitpid(child, nullptr, 0);
    }
  });
  Sampler::Options options{.frequency = {999}};
  options.filter.pids = {Pid(static_cast<uint32_t>(parent))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const ColdSample sample = FirstColdSampleOf(Pid(static_cast<uint32_t>(parent)), *sampler);
  const PublishedMapping all{.mapping = {Address(0x1000), Address(0x7fff'ffff'f000), {}, 0}};
  const auto publish = [&](uint64_t ticks_late) {
    ProcessKey process = sample.process;
    process.start_time = StartTime(process.start_time.value() + ticks_late);
    sampler->mappings().Publish(process, sample.exec, {.count = sample.exec_pages, .slack = 0},
                                std::span(&all, 1));
  };
  const auto known_samples_of_children = [&] {
    const Result<Window> window = sampler->windows().Drain();
    return std::ranges::count_if(window->samples, [&](const Sample& of) {
      const StackEnd end = window->stacks[of.stack].end;
      return of.process.pid != sample.process.pid && end != StackEnd::kNotReady &&
             end != StackEnd::kNoUserStack;
    });
  };
  EXPECT_EQ(known_samples_of_children(), 0);
  publish(2);
  const uint64_t unknown = sampler->counters().cold.unknown_process;
  EXPECT_TRUE(WaitFor([&] {
    sampler->cold().Take();  // makes room for more
    return sampler->counters().cold.unknown_process > unknown + 50;
  }));
  EXPECT_EQ(known_samples_of_children(), 0);
  publish(0);
  EXPECT_TRUE(WaitFor([&] { return known_samples_of_children() > 0; }));
  EXPECT_THAT(KeysOf("processes"), testing::Contains(static_cast<uint32_t>(parent)));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(WaitFor([] { return KeysOf("processes").empty(); }))
      << "nobody else removes what a child has inherited";
}

TEST_F(SamplerLive, FindsMappingsInEveryPartOfThePool) {
  const Child child;
  Sampler::Options options{.frequency = {999}, .sizes = {.mapping_parts = 2}};
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const ColdSample sample = FirstColdSampleOf(child.pid(), *sampler);
  std::vector<PublishedMapping> many;
  for (uint64_t i = 1; i < PYRO_POOL_PART - 1; ++i) {
    many.push_back({.mapping = {Address(i * 0x2000), Address(i * 0x2000 + 0x1000), {}, 0}});
  }
  sampler->mappings().Publish({Pid(4'000'000), StartTime(1)}, ExecId(1), {.count = 1, .slack = 0},
                              many);
  const PublishedMapping all{.mapping = {Address(0x1000), Address(0x7fff'ffff'f000), {}, 0}};
  sampler->mappings().Publish(sample.process, sample.exec, {.count = sample.exec_pages, .slack = 0},
                              std::span(&all, 1));
  EXPECT_EQ(sampler->counters().mappings.mappings, PYRO_POOL_PART + 2);
  const uint64_t samples = sampler->windows().accounting().exported;
  const uint64_t refused = sampler->counters().cold.unknown_process;
  EXPECT_TRUE(WaitFor([&] { return sampler->windows().accounting().exported > samples + 20; }));
  EXPECT_LE(sampler->counters().cold.unknown_process, refused + 1) << "one tick may have begun";
}

TEST_F(SamplerLive, WakesWhoWaitsForTables) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail({});
  ASSERT_TRUE(sampler);
  sampler->tables().Wake();
  sampler->tables().Wait(kForever);
  const PublishedMapping mapping{.mapping = {Address(0x1000), Address(0x2000), ObjectId(7), 0}};
  sampler->mappings().Publish({Pid(4'000'000), StartTime(1)}, ExecId(1), {.count = 1, .slack = 0},
                              std::span(&mapping, 1));
  sampler->tables().Wait(kForever);
  EXPECT_EQ(sampler->tables().TakeWanted(), std::vector{ObjectId(7)});
}

TEST_F(SamplerLive, ListsItselfAmongTheTasks) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail({});
  ASSERT_TRUE(sampler);
  const MonotonicTime before = MonotonicNow();
  const Result<std::vector<pyro_task_record>> tasks = sampler->mappings().ListTasks();
  ASSERT_TRUE(tasks.has_value());
  const auto self =
      std::ranges::find(*tasks, static_cast<uint32_t>(getpid()), &pyro_task_record::tid);
  ASSERT_NE(self, tasks->end());
  EXPECT_EQ(self->pid, self->tid);
  EXPECT_GE(self->now_ns, before.value());
  EXPECT_GT(self->start_boottime_ns, 0U);
}

}  // namespace
}  // namespace pyrometer
