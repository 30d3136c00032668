// SPDX-License-Identifier: Apache-2.0
#include "sampler/mapping_upload.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <vector>

#include "base/unique_fd.h"
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
  void SetUp() override {
    if (!MayLoadBpf()) GTEST_SKIP() << "needs root";
    ASSERT_TRUE(processes_);
  }
  static UniqueFd ProcessMap() {
    return UniqueFd(bpf_map_create(BPF_MAP_TYPE_HASH, "test_processes", sizeof(uint32_t),
                                   sizeof(pyro_process), 16, nullptr));
  }
  bool Publish(uint32_t pid, MonotonicTime now) {
    const ProcessKey process{Pid(pid), StartTime(5)};
    return upload_.Publish(process, ExecId(1), {.count = 2, .slack = 0}, std::span(&libc_, 1), now);
  }
  bool IsKnown(uint32_t pid) {
    pyro_process found{};
    return bpf_map_lookup_elem(processes_.get(), &pid, &found) == 0;
  }
  uint64_t Tables() { return table_upload_.counters().tables; }

  UniqueFd processes_ = ProcessMap();
  PublishedMapping libc_{.mapping = {Address(0x1000), Address(0x3000), kLibc, 0}};
  std::vector<pyro_object_table> tables_ = std::vector<pyro_object_table>(8);
  std::vector<pyro_table_page> pages_ = std::vector<pyro_table_page>(64);
  std::vector<pyro_unwind_rule> rules_ = std::vector<pyro_unwind_rule>(64);
  std::vector<pyro_mapping> pool_ = std::vector<pyro_mapping>(1);
  VectorChunks chunks_;
  TableUpload table_upload_{{tables_, pages_, rules_}, chunks_, 2};
  MappingUpload upload_{pool_, processes_.get(), table_upload_};
};

TEST_F(MappingUploadTest, SharesTheMappingsOfAParentAndItsChild) {
  ASSERT_TRUE(Publish(100, kNow));
  EXPECT_TRUE(Publish(101, kNow)) << "the pool has room for one mapping";
  EXPECT_TRUE(IsKnown(100));
  EXPECT_TRUE(IsKnown(101));
}

TEST_F(MappingUploadTest, GivesBackWhatIsWithdrawnThoughNothingIsPublished) {
  ASSERT_TRUE(Publish(100, kNow));
  table_upload_.Load(kLibc, OneRow(), kNow);
  upload_.Withdraw(Pid(100), kNow);
  EXPECT_FALSE(IsKnown(100));
  upload_.ReleaseWithdrawn(After(kForkQuarantine / 2));
  EXPECT_EQ(Tables(), 1U) << "a child that we have not heard of may have inherited it";
  upload_.ReleaseWithdrawn(After(kForkQuarantine));
  EXPECT_EQ(Tables(), 0U);
}

TEST_F(MappingUploadTest, KeepsWhatAChildStillUses) {
  ASSERT_TRUE(Publish(100, kNow));
  ASSERT_TRUE(Publish(101, kNow));
  table_upload_.Load(kLibc, OneRow(), kNow);
  upload_.Withdraw(Pid(100), kNow);
  upload_.ReleaseWithdrawn(After(kForkQuarantine));
  EXPECT_EQ(Tables(), 1U);
}

TEST_F(MappingUploadTest, CountsWhatIsUsedAndWhatFoundNoRoom) {
  ASSERT_TRUE(Publish(100, kNow));
  ASSERT_TRUE(Publish(101, kNow));
  const PublishedMapping other{.mapping = {Address(0x7000), Address(0x9000), ObjectId(8), 0}};
  EXPECT_FALSE(upload_.Publish({Pid(102), StartTime(5)}, ExecId(1), {.count = 2, .slack = 0},
                               std::span(&other, 1), kNow));
  EXPECT_EQ(upload_.counters().mappings, 1U);
  EXPECT_EQ(upload_.counters().room, 1U);
  EXPECT_EQ(upload_.counters().processes, 2U);
  EXPECT_EQ(upload_.counters().refused, 1U);
  upload_.Withdraw(Pid(100), kNow);
  upload_.Withdraw(Pid(101), kNow);
  EXPECT_EQ(upload_.counters().processes, 0U);
  EXPECT_EQ(upload_.counters().mappings, 1U) << "a child that we have not heard of may use it";
  upload_.ReleaseWithdrawn(After(kForkQuarantine));
  EXPECT_EQ(upload_.counters().mappings, 0U);
}

}  // namespace
}  // namespace pyrometer
