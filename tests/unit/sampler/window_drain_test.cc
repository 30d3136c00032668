// SPDX-License-Identifier: Apache-2.0
#include "sampler/window_drain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

constexpr WindowMaps kMaps{.counts = 1, .stacks = {2, 3, 4}};

// Maps of bytes, which give a few entries at a time.
class FakeMaps : public WindowMapReader {
 public:
  template <typename Key, typename Value>
  void Add(int map, const Key& key, const Value& value) {
    Entry entry{.key = Bytes(sizeof(key)), .value = Bytes(sizeof(value))};
    std::memcpy(entry.key.data(), &key, sizeof(key));
    std::memcpy(entry.value.data(), &value, sizeof(value));
    entries_[map].push_back(std::move(entry));
  }
  // Ticks of a process, with a stack of one frame.
  void AddTicks(uint32_t pid, uint64_t count, uint64_t stack_id) {
    pyro_stack_small stack{};
    stack.head.user_frames = 1;
    stack.frames[0] = stack_id;
    Add(kMaps.stacks[0], stack_id, stack);
    pyro_sample_key key{};
    key.pid = pid;
    key.stack_id = stack_id;
    Add(kMaps.counts, key, pyro_sample_count{.count = count, .first_ns = 1, .last_ns = 2});
  }
  // The batch with this number fails, when it has taken what it could.
  void FailAt(int batch, int error) { failures_[batch] = error; }

  int TakeBatch(int map, const uint32_t*, uint32_t*, void* keys, void* values,
                uint32_t* count) override {
    const uint32_t most = std::min(*count, 3U);
    std::deque<Entry>& entries = entries_[map];
    for (*count = 0; *count < most && !entries.empty(); ++*count, entries.pop_front()) {
      keys = Put(entries.front().key, keys);
      values = Put(entries.front().value, values);
    }
    const auto failure = failures_.find(batches_++);
    if (failure != failures_.end()) return failure->second;
    return entries.empty() ? ENOENT : 0;
  }

 private:
  using Bytes = std::vector<std::byte>;
  struct Entry {
    Bytes key;
    Bytes value;
  };
  static void* Put(const Bytes& bytes, void* to) {
    std::memcpy(to, bytes.data(), bytes.size());
    return static_cast<std::byte*>(to) + bytes.size();
  }
  std::map<int, std::deque<Entry>> entries_;
  std::map<int, int> failures_;
  int batches_ = 0;
};

uint64_t TicksIn(const Window& window) {
  uint64_t ticks = 0;
  for (const Sample& sample : window.samples) ticks += sample.count;
  return ticks;
}

void ExpectEachHasItsStack(const Window& window) {
  for (const Sample& sample : window.samples) {
    const Stack& stack = window.stacks.at(sample.stack);
    ASSERT_EQ(window.FramesOf(stack).size(), 1U);
    EXPECT_EQ(window.FramesOf(stack)[0].bits(), sample.process.pid.value() * 16);
  }
}

TEST(WindowDrain, TakesEverythingOnce) {
  FakeMaps maps;
  for (uint32_t pid = 1; pid <= 10; ++pid) maps.AddTicks(pid, pid, uint64_t{pid} * 16);
  WindowDrain drain(maps);
  ASSERT_TRUE(drain.Take(kMaps).has_value());
  const Window window = drain.Finish();
  EXPECT_EQ(window.samples.size(), 10U);
  EXPECT_EQ(TicksIn(window), 55U);
  ExpectEachHasItsStack(window);
  ASSERT_TRUE(drain.Take(kMaps).has_value());
  EXPECT_TRUE(drain.Finish().samples.empty());
}

TEST(WindowDrain, PutsTogetherWhatIsInJournalsAndMaps) {
  FakeMaps maps;
  maps.AddTicks(1, 5, 16);
  WindowDrain drain(maps);
  pyro_journal_record record{};
  record.stack.head.user_frames = 1;
  for (const uint32_t pid : {1U, 2U, 2U}) {
    record.key.pid = pid;
    record.key.stack_id = uint64_t{pid} * 16;
    record.stack.frames[0] = record.key.stack_id;
    record.time_ns += 10;
    drain.Add(record, {record.stack.frames, 1});
  }
  record.key.thread[0] = 'x';
  drain.Add(record, {record.stack.frames, 1});
  ASSERT_TRUE(drain.Take(kMaps).has_value());
  const Window window = drain.Finish();
  EXPECT_EQ(window.stacks.size(), 2U);
  ExpectEachHasItsStack(window);
  ASSERT_EQ(window.samples.size(), 3U) << "a thread is a sample of its own";
  EXPECT_EQ(window.samples[0].count, 6U);
  EXPECT_EQ(window.samples[0].first_seen, MonotonicTime(1));
  EXPECT_EQ(window.samples[0].last_seen, MonotonicTime(10));
  EXPECT_EQ(window.samples[1].count, 2U);
  EXPECT_EQ(window.samples[1].first_seen, MonotonicTime(20));
  EXPECT_EQ(window.samples[1].last_seen, MonotonicTime(30));
  EXPECT_EQ(window.samples[2].thread, "x");
}

class FailingBatch : public testing::TestWithParam<int> {};

TEST_P(FailingBatch, LosesNothing) {
  FakeMaps maps;
  for (uint32_t pid = 1; pid <= 10; ++pid) maps.AddTicks(pid, pid, uint64_t{pid} * 16);
  maps.FailAt(GetParam(), ENOMEM);
  WindowDrain drain(maps);
  EXPECT_FALSE(drain.Take(kMaps).has_value());
  ASSERT_TRUE(drain.Take(kMaps).has_value());
  const Window window = drain.Finish();
  EXPECT_EQ(window.samples.size(), 10U);
  EXPECT_EQ(TicksIn(window), 55U);
  ExpectEachHasItsStack(window);
}

// Four of small stacks, one each of the others, four of counts.
INSTANTIATE_TEST_SUITE_P(Each, FailingBatch, testing::Range(0, 10));

TEST(WindowDrain, MakesOneWindowOfTwoHalves) {
  FakeMaps maps;
  maps.AddTicks(1, 5, 16);
  WindowDrain drain(maps);
  ASSERT_TRUE(drain.Take(kMaps).has_value());
  maps.AddTicks(1, 7, 16);
  maps.AddTicks(2, 1, 32);
  ASSERT_TRUE(drain.Take(kMaps).has_value());
  const Window window = drain.Finish();
  EXPECT_EQ(TicksIn(window), 13U);
  ExpectEachHasItsStack(window);
}

TEST(WindowDrain, KeepsACountWithoutItsStackAndSaysThatItIsCut) {
  FakeMaps maps;
  maps.Add(kMaps.counts, pyro_sample_key{},
           pyro_sample_count{.count = 3, .first_ns = 5, .last_ns = 4});
  WindowDrain drain(maps);
  ASSERT_TRUE(drain.Take(kMaps).has_value());
  const Window window = drain.Finish();
  ASSERT_EQ(window.samples.size(), 1U);
  EXPECT_TRUE(IsCut(window.stacks.at(window.samples[0].stack).end));
  EXPECT_EQ(window.samples[0].last_seen, MonotonicTime(5));
}

}  // namespace
}  // namespace pyrometer
