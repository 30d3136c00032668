// SPDX-License-Identifier: Apache-2.0
#include "sampler/tick_journals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

constexpr size_t kJournalBytes = 2048;
constexpr size_t kCpus = 3;

// Journals as the kernel side writes them.
class Journals : public testing::Test {
 protected:
  struct Seen {
    uint32_t pid;
    std::vector<__u64> frames;
    bool operator==(const Seen&) const = default;
  };

  void Write(size_t cpu, uint32_t half, uint32_t pid, const std::vector<__u64>& frames) {
    size_t& at = ends_.at(cpu * 2 + half);
    pyro_journal_record record{};
    record.key.pid = pid;
    record.time_ns = 1;
    record.stack.head.kernel_frames = frames.empty() ? 0 : 1;
    record.stack.head.user_frames =
        static_cast<uint16_t>(frames.size() - record.stack.head.kernel_frames);
    std::ranges::copy(frames, record.stack.frames);
    const size_t bytes = PYRO_JOURNAL_HEAD + frames.size() * sizeof(frames[0]);
    std::memcpy(At(cpu, half, at), &record, bytes);
    at += bytes;
    const uint64_t unwritten = 0;
    std::memcpy(At(cpu, half, at + offsetof(pyro_journal_record, time_ns)), &unwritten,
                sizeof(unwritten));
  }
  std::byte* At(size_t cpu, uint32_t half, size_t at) {
    return memory_.data() + (cpu * 2 + half) * kJournalBytes + at;
  }
  std::vector<Seen> Take(uint32_t half) {
    std::vector<Seen> seen;
    journals_.TakeAll(half, [&](const pyro_journal_record& record, std::span<const __u64> frames) {
      seen.push_back({record.key.pid, {frames.begin(), frames.end()}});
    });
    return seen;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kCpus * 2 * kJournalBytes);
  std::array<size_t, kCpus * 2> ends_{};
  TickJournals journals_{memory_, kJournalBytes};
};

TEST_F(Journals, AreEmptyAtFirst) {
  EXPECT_TRUE(Take(0).empty());
  EXPECT_TRUE(Take(1).empty());
}

TEST_F(Journals, GiveTheRecordsOfOneHalfOnce) {
  Write(0, 1, 10, {1, 2, 3});
  Write(0, 1, 11, {});
  Write(2, 1, 12, {7});
  Write(1, 0, 13, {9, 9});
  const std::vector<Seen> expected = {{10, {1, 2, 3}}, {11, {}}, {12, {7}}};
  EXPECT_EQ(Take(1), expected);
  EXPECT_TRUE(Take(1).empty());
  EXPECT_EQ(Take(0), (std::vector<Seen>{{13, {9, 9}}}));
}

// A journal begins anew over what it held before.
TEST_F(Journals, EndWhereTheKernelSideHasGot) {
  Write(0, 0, 10, {1});
  Write(0, 0, 11, {2});
  Take(0);
  ends_.fill(0);
  Write(0, 0, 12, {3, 4});
  EXPECT_EQ(Take(0), (std::vector<Seen>{{12, {3, 4}}}));
}

TEST_F(Journals, HaveNoMoreThanTheyHold) {
  for (uint32_t pid = 1; pid <= 25; ++pid) Write(0, 0, pid, {});
  Write(1, 0, 100, {});
  const std::vector<Seen> seen = Take(0);
  ASSERT_EQ(seen.size(), 26U);
  EXPECT_EQ(seen.back().pid, 100U);
}

// The kernel side does not write such; reading stays within the journal all the same.
TEST_F(Journals, EndBeforeARecordThatReachesBeyondThem) {
  Write(0, 0, 1, {});
  pyro_journal_record record{};
  record.time_ns = 1;
  for (const auto& [kernel, user] : {std::pair{0, 129}, {65535, 65535}, {128, 0}}) {
    record.stack.head.kernel_frames = static_cast<uint16_t>(kernel);
    record.stack.head.user_frames = static_cast<uint16_t>(user);
    ends_[0] = 0;
    for (uint32_t pid = 1; pid <= 20; ++pid) Write(0, 0, pid, {});
    std::memcpy(At(0, 0, ends_[0]), &record, PYRO_JOURNAL_HEAD);
    EXPECT_EQ(Take(0).size(), 20U) << kernel << " and " << user << " frames";
  }
}

}  // namespace
}  // namespace pyrometer
