// SPDX-License-Identifier: Apache-2.0
#include "sampler/row_chunks.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/sampler/chunk_memory.h"

namespace pyrometer {
namespace {

constexpr MonotonicTime kNow(5'000'000'000);
constexpr MonotonicTime kMuchLater(50'000'000'000);

std::vector<pyro_unwind_row> Rows(size_t count) {
  return std::vector<pyro_unwind_row>(count, {.pc_low = 4, .rule = 2});
}

class RowChunksTest : public testing::Test {
 protected:
  VectorChunks memory_;
  RowChunks chunks_{memory_, 2};
};

TEST_F(RowChunksTest, MakesAChunkOnlyWhenNoOtherHasRoom) {
  ASSERT_TRUE(chunks_.Store(Rows(40000), kNow).has_value());
  const auto second = chunks_.Store(Rows(24000), kNow);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->chunk, 0);
  EXPECT_EQ(second->first, 40000);
  EXPECT_EQ(memory_.chunks.size(), 1U);
  EXPECT_EQ(chunks_.Store(Rows(4000), kNow)->chunk, 1);
  EXPECT_EQ(memory_.chunks.size(), 2U);
  EXPECT_EQ(memory_.chunks[0][63999].rule, 2);
  EXPECT_EQ(chunks_.rows(), 68000U);
}

TEST_F(RowChunksTest, StaysWithinTheBudget) {
  ASSERT_TRUE(chunks_.Store(Rows(RowChunks::kMostRows), kNow).has_value());
  ASSERT_TRUE(chunks_.Store(Rows(RowChunks::kMostRows), kNow).has_value());
  EXPECT_EQ(chunks_.Store(Rows(2), kNow).error().code(), ErrorCode::kExhausted);
}

TEST_F(RowChunksTest, RefusesMoreThanAPageCanHave) {
  EXPECT_EQ(chunks_.Store(Rows(RowChunks::kMostRows + 1), kNow).error().code(),
            ErrorCode::kMalformed);
  EXPECT_EQ(chunks_.chunks(), 0U);
}

TEST_F(RowChunksTest, ReusesRoomAndRemovesChunksAfterTheQuarantine) {
  const auto range = chunks_.Store(Rows(RowChunks::kMostRows), kNow);
  ASSERT_TRUE(range.has_value());
  chunks_.Retire(*range, kNow);
  chunks_.Reuse(kNow);
  EXPECT_EQ(memory_.chunks.size(), 1U) << "a program may be reading it";
  EXPECT_EQ(chunks_.resting(), RowChunks::kMostRows);
  chunks_.Reuse(kMuchLater);
  EXPECT_TRUE(memory_.chunks.empty());
  EXPECT_EQ(chunks_.rows(), 0U);
  EXPECT_EQ(chunks_.resting(), 0U);
}

TEST_F(RowChunksTest, PassesOnWhatTheKernelSays) {
  memory_.refuse = true;
  EXPECT_EQ(chunks_.Store(Rows(1), kNow).error().code(), ErrorCode::kPermission);
}

}  // namespace
}  // namespace pyrometer
