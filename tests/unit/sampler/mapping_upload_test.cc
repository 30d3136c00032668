// SPDX-License-Identifier: Apache-2.0
#include "sampler/mapping_upload.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/result.h"
#include "sampler/quarantine.h"
#include "tests/unit/sampler/chunk_memory.h"
#include "tests/unit/sampler/may_load_bpf.h"

namespace pyrometer {
namespace {

constexpr ObjectId kLibc(7);
constexpr MonotonicTime kNow(5'000'000'000);

MonotonicTime After(std::chrono::nanoseconds time) {
  return MonotonicTime(kNow.value() + static_cast<uint64_t>(time.count()) + 1);
}

UnwindTable OneRow() {
  UnwindTable table;
  table.rules = {pyro_unwind_rule{}};
  table.pages = {{0, 1}};
  table.rows = {{0, 0}};
  return table;
}

class MappingUploadTest : public testing::Test {
 protected:
  static constexpr size_t kRoom = 16;
  static constexpr uint32_t kEntries = 16;

  explicit MappingUploadTest(size_t room = kRoom) : pool_(room) {}
  void SetUp() override {
    if (!MayLoadBpf()) GTEST_SKIP() << "needs root";
    ASSERT_TRUE(processes_);
  }
  static UniqueFd ProcessMap() {
    return UniqueFd(bpf_map_create(BPF_MAP_TYPE_HASH, "test_processes", sizeof(uint32_t),
                                   sizeof(pyro_process), kEntries, nullptr));
  }
  bool Publish(uint32_t pid, std::span<const PublishedMapping> mappings, MonotonicTime now) {
    const ProcessKey process{Pid(pid), StartTime(5)};
    return upload_.Publish(process, ExecId(1), {.count = 2, .slack = 0}, mappings, now);
  }
  bool Publish(uint32_t pid, MonotonicTime now) { return Publish(pid, std::span(&libc_, 1), now); }
  // Mappings that no other process has.
  static std::vector<PublishedMapping> Own(uint32_t pid, uint32_t count) {
    std::vector<PublishedMapping> mappings;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t start = (uint64_t{pid} << 32) + i * 0x2000;
      mappings.push_back({.mapping = {Address(start), Address(start + 0x1000), kLibc, 0}});
    }
    return mappings;
  }
  std::optional<pyro_process> EntryOf(uint32_t pid) {
    pyro_process found{};
    if (bpf_map_lookup_elem(processes_.get(), &pid, &found) != 0) return std::nullopt;
    return found;
  }
  // Also an entry that leads nowhere is one.
  bool HasEntry(uint32_t pid) { return EntryOf(pid).has_value(); }
  // What the sampling program reads at a tick.
  bool Tick(uint32_t pid) { return Tick(pid, EntryOf(pid).value_or(pyro_process{})); }
  bool Tick(uint32_t pid, pyro_process entry) {
    if (entry.generation == 0 || pool_[entry.first_mapping - 1].table != entry.generation) {
      entry.missed = 1;
      bpf_map_update_elem(processes_.get(), &pid, &entry, BPF_EXIST);
      return false;
    }
    pool_[entry.first_mapping - 1].object = 1;
    return pool_[entry.first_mapping].start >> 32 == pid ||
           pool_[entry.first_mapping].start < kNull;
  }
  uint64_t Tables() { return table_upload_.counters().tables; }

  static constexpr uint64_t kNull = 0x10000;
  UniqueFd processes_ = ProcessMap();
  PublishedMapping libc_{.mapping = {Address(0x1000), Address(0x3000), kLibc, 0}};
  std::vector<pyro_object_table> tables_ = std::vector<pyro_object_table>(8);
  std::vector<pyro_table_page> pages_ = std::vector<pyro_table_page>(64);
  std::vector<pyro_unwind_rule> rules_ = std::vector<pyro_unwind_rule>(64);
  std::vector<pyro_mapping> pool_;
  VectorChunks chunks_;
  uint32_t generation_ = 0;
  TableUpload table_upload_{{tables_, pages_, rules_, generation_}, chunks_, 2};
  int waits_ = 0;  // for readers
  std::function<void()> during_wait_ = [] {};
  bool waits_fail_ = false;
  MappingUpload upload_{pool_, processes_.get(), table_upload_, [this]() -> Result<void> {
                          ++waits_;
                          during_wait_();
                          if (waits_fail_) return Fail(ErrorCode::kIo, "no grace period");
                          return {};
                        }};
};

TEST_F(MappingUploadTest, SharesTheMappingsOfAParentAndItsChild) {
  ASSERT_TRUE(Publish(100, kNow));
  EXPECT_TRUE(Publish(101, kNow));
  EXPECT_TRUE(Tick(100));
  EXPECT_TRUE(Tick(101));
  EXPECT_EQ(upload_.counters().mappings, 2U) << "one mapping and its head";
}

TEST_F(MappingUploadTest, GivesBackWhatIsWithdrawnThoughNothingIsPublished) {
  ASSERT_TRUE(Publish(100, kNow));
  table_upload_.Load(kLibc, OneRow(), kNow);
  upload_.Withdraw(Pid(100), kNow);
  EXPECT_FALSE(HasEntry(100));
  upload_.ReleaseWithdrawn(After(kIdleMappings / 2));
  EXPECT_EQ(Tables(), 1U) << "a child that we have not heard of may have inherited it";
  upload_.ReleaseWithdrawn(After(kIdleMappings));
  EXPECT_EQ(Tables(), 0U);
}

TEST_F(MappingUploadTest, TellsOnceWhichObjectsTicksWereIn) {
  ASSERT_TRUE(Publish(100, kNow));
  table_upload_.Load(kLibc, OneRow(), kNow);
  pages_[tables_[pool_[EntryOf(100)->first_mapping].table].first_page].used = 1;
  EXPECT_TRUE(upload_.TakeUsed().empty()) << "ticks in another process used the table";
  EXPECT_TRUE(Tick(100));
  EXPECT_EQ(upload_.TakeUsed(), std::vector{kLibc});
  ASSERT_TRUE(Publish(101, Own(101, 2), kNow));
  EXPECT_TRUE(Tick(101));
  EXPECT_TRUE(upload_.TakeUsed().empty());
}

TEST_F(MappingUploadTest, KeepsWhatAChildStillUses) {
  ASSERT_TRUE(Publish(100, kNow));
  ASSERT_TRUE(Publish(101, kNow));
  table_upload_.Load(kLibc, OneRow(), kNow);
  upload_.Withdraw(Pid(100), kNow);
  upload_.ReleaseWithdrawn(After(kIdleMappings));
  EXPECT_EQ(Tables(), 1U);
  EXPECT_TRUE(Tick(101));
}

TEST_F(MappingUploadTest, TakesUpAgainWhatNobodyHadForAWhile) {
  ASSERT_TRUE(Publish(100, kNow));
  upload_.Withdraw(Pid(100), kNow);
  ASSERT_TRUE(Publish(101, After(kIdleMappings / 2)));
  EXPECT_EQ(upload_.counters().mappings, 2U) << "in the same place";
  upload_.ReleaseWithdrawn(After(kIdleMappings));
  EXPECT_TRUE(Tick(101)) << "it is no longer idle";
}

TEST_F(MappingUploadTest, EndsTheReferencesThatAForkCopied) {
  ASSERT_TRUE(Publish(100, kNow));
  const pyro_process inherited = *EntryOf(100);
  upload_.Withdraw(Pid(100), kNow);
  EXPECT_TRUE(Tick(101, inherited)) << "as long as there is room";
  upload_.ReleaseWithdrawn(After(kIdleMappings));
  EXPECT_FALSE(Tick(101, inherited));
  EXPECT_EQ(upload_.counters().mappings, 2U) << "a program may be in the middle of reading it";
  upload_.ReleaseWithdrawn(After(kIdleMappings + kReaderQuarantine + kReaderQuarantine));
  EXPECT_EQ(upload_.counters().mappings, 0U);
  ASSERT_TRUE(Publish(102, Own(102, 1), After(2 * kIdleMappings)));
  EXPECT_EQ(EntryOf(102)->first_mapping, inherited.first_mapping);
  EXPECT_FALSE(Tick(101, inherited)) << "the same place, another generation";
}

TEST_F(MappingUploadTest, TakesNoMappingForAHead) {
  ASSERT_TRUE(Publish(100, Own(100, 4), kNow));
  const pyro_process entry = *EntryOf(100);
  for (uint32_t i = 0; i < entry.mapping_count; ++i) {
    EXPECT_EQ(pool_[entry.first_mapping + i].table & PYRO_MAPPING_GENERATION, 0U);
  }
}

class LargeMappingUploadTest : public MappingUploadTest {
 protected:
  LargeMappingUploadTest() : MappingUploadTest(PYRO_POOL_PART) {}
};

// Three processes, each of which maps 330 files in 1.5 seconds: 164,000 mappings are published.
TEST_F(LargeMappingUploadTest, HasRoomForWhoeverMapsManyFilesInAShortTime) {
  constexpr std::chrono::nanoseconds kTime = std::chrono::milliseconds(1500);
  for (uint32_t count = 1; count <= 330; ++count) {
    const MonotonicTime now = After(kTime * count / 330);
    for (const uint32_t pid : {100U, 101U, 102U}) {
      if (!Publish(pid, Own(pid, count), now)) {
        ASSERT_TRUE(upload_.AwaitRoom(now));
        ASSERT_TRUE(Publish(pid, Own(pid, count), now)) << pid << " with " << count;
      }
      EXPECT_TRUE(Tick(pid));
    }
  }
  EXPECT_TRUE(Publish(103, kNow));
  EXPECT_GT(waits_, 0) << "nothing is overwritten that a program may be reading";
  EXPECT_LT(waits_, 5);
}

TEST_F(MappingUploadTest, OverwritesNothingWithoutAGracePeriod) {
  waits_fail_ = true;
  ASSERT_TRUE(Publish(100, Own(100, kRoom - 1), kNow));
  upload_.Withdraw(Pid(100), kNow);
  EXPECT_FALSE(Publish(101, kNow));
  EXPECT_FALSE(upload_.AwaitRoom(kNow));
  EXPECT_EQ(waits_, 1);
  EXPECT_FALSE(Publish(101, kNow));
  EXPECT_FALSE(upload_.AwaitRoom(kNow));
  EXPECT_EQ(waits_, 1) << "it takes long: not at every attempt";
  EXPECT_TRUE(Publish(101, After(kReaderQuarantine)));
}

TEST_F(MappingUploadTest, WaitsForReadersOnlyWhenToldToAndThenHasRoom) {
  ASSERT_TRUE(Publish(100, Own(100, kRoom - 1), kNow));
  EXPECT_FALSE(upload_.AwaitRoom(kNow)) << "nobody lacks any";
  upload_.Withdraw(Pid(100), kNow);
  EXPECT_FALSE(Publish(101, kNow));
  EXPECT_EQ(waits_, 0);
  EXPECT_TRUE(upload_.TakeMissed(kNow).empty());
  EXPECT_TRUE(upload_.AwaitRoom(kNow));
  EXPECT_EQ(waits_, 1);
  EXPECT_EQ(upload_.TakeMissed(kNow), std::vector{Pid(101)}) << "at once, ticks or no ticks";
  EXPECT_TRUE(upload_.TakeMissed(kNow).empty());
  EXPECT_TRUE(Publish(101, kNow));
  EXPECT_TRUE(Tick(101));
}

TEST_F(MappingUploadTest, NamesAfterTheWaitOnlyThoseWhomItHelps) {
  ASSERT_TRUE(Publish(100, Own(100, kRoom - 1), kNow));
  upload_.Withdraw(Pid(100), kNow);
  EXPECT_FALSE(Publish(101, kNow));
  EXPECT_FALSE(Publish(102, Own(102, kRoom), kNow)) << "more than there is";
  EXPECT_TRUE(upload_.AwaitRoom(kNow));
  EXPECT_EQ(upload_.TakeMissed(kNow), std::vector{Pid(101)});
}

TEST_F(MappingUploadTest, OverwritesNothingThatWasTakenBackDuringTheWait) {
  ASSERT_TRUE(Publish(100, Own(100, 7), kNow));
  ASSERT_TRUE(Publish(101, Own(101, 7), kNow));
  upload_.Withdraw(Pid(100), kNow);
  EXPECT_FALSE(Publish(102, Own(102, 15), kNow));
  during_wait_ = [this] {
    upload_.Withdraw(Pid(101), kNow);
    EXPECT_FALSE(Publish(103, Own(103, 15), kNow));
  };
  EXPECT_TRUE(upload_.AwaitRoom(kNow));
  EXPECT_FALSE(Publish(103, Own(103, 15), kNow));
  EXPECT_TRUE(Publish(104, Own(104, 7), kNow)) << "in the place of the first";
}

TEST_F(MappingUploadTest, MakesRoomWhereNoTickIsAndTriesAgainWhereOneIs) {
  const auto second = [](int n) { return After(std::chrono::seconds(n)); };
  ASSERT_TRUE(Publish(100, Own(100, 7), kNow));
  ASSERT_TRUE(Publish(101, Own(101, 7), kNow));
  EXPECT_TRUE(Tick(100));
  EXPECT_FALSE(Publish(102, Own(102, 7), kNow)) << "these are too new to be judged";
  EXPECT_EQ(upload_.counters().unplaced, 1U);
  EXPECT_TRUE(upload_.TakeMissed(second(2)).empty()) << "no tick has hit it";
  EXPECT_FALSE(Tick(102));
  EXPECT_EQ(upload_.TakeMissed(second(2)), std::vector{Pid(102)});
  EXPECT_TRUE(upload_.TakeMissed(second(2)).empty()) << "not all the time";
  EXPECT_TRUE(Tick(100));
  EXPECT_FALSE(Publish(102, Own(102, 7), second(2)));
  EXPECT_TRUE(upload_.AwaitRoom(second(2)));
  EXPECT_TRUE(Publish(102, Own(102, 7), second(2)));
  EXPECT_TRUE(Tick(100));
  EXPECT_TRUE(Tick(102));
  EXPECT_EQ(upload_.counters().evicted, 1U);
  EXPECT_TRUE(upload_.TakeMissed(second(4)).empty());
  EXPECT_FALSE(Tick(101)) << "the one that nobody used";
  EXPECT_EQ(upload_.TakeMissed(second(4)), std::vector{Pid(101)});
  upload_.Withdraw(Pid(101), second(4));
  EXPECT_EQ(upload_.counters().unplaced, 0U);
}

TEST_F(MappingUploadTest, MakesRoomInTheListOfProcesses) {
  for (uint32_t pid = 100; pid < 100 + kEntries; ++pid) ASSERT_TRUE(Publish(pid, kNow));
  EXPECT_FALSE(Publish(200, Own(200, 1), kNow));
  EXPECT_EQ(upload_.counters().refused, 1U);
  EXPECT_FALSE(HasEntry(200));
  EXPECT_EQ(upload_.TakeMissed(After(std::chrono::seconds(2))), std::vector{Pid(200)});
  EXPECT_TRUE(Publish(200, Own(200, 1), After(std::chrono::seconds(2))));
  EXPECT_TRUE(Tick(200));
  EXPECT_EQ(upload_.counters().evicted, kEntries);
}

TEST_F(MappingUploadTest, ForgetsAllButTheLiving) {
  ASSERT_TRUE(Publish(100, kNow));
  ASSERT_TRUE(Publish(101, kNow));
  const pyro_process inherited = *EntryOf(100);
  const uint32_t child = 102;  // of which nobody has told us
  ASSERT_EQ(bpf_map_update_elem(processes_.get(), &child, &inherited, BPF_NOEXIST), 0);
  const std::vector<Pid> living = {Pid(101)};
  upload_.Sweep(living, kNow);
  EXPECT_FALSE(HasEntry(100));
  EXPECT_TRUE(Tick(101));
  EXPECT_FALSE(HasEntry(102));
  EXPECT_EQ(upload_.counters().processes, 1U);
  EXPECT_EQ(upload_.counters().swept, 2U);
}

TEST_F(MappingUploadTest, CountsWhatIsUsedAndWhatFoundNoRoom) {
  ASSERT_TRUE(Publish(100, kNow));
  ASSERT_TRUE(Publish(101, kNow));
  EXPECT_FALSE(Publish(102, Own(102, kRoom), kNow)) << "more than there is";
  EXPECT_EQ(upload_.counters().mappings, 2U);
  EXPECT_EQ(upload_.counters().room, kRoom);
  EXPECT_EQ(upload_.counters().processes, 2U);
  EXPECT_EQ(upload_.counters().refused, 1U);
  upload_.Withdraw(Pid(100), kNow);
  upload_.Withdraw(Pid(101), kNow);
  EXPECT_EQ(upload_.counters().processes, 0U);
}

}  // namespace
}  // namespace pyrometer
