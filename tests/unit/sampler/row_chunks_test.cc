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
  ASSERT_TRUE(chunks_.Store(Rows(10000), kNow).has_value());
  const auto second = chunks_.Store(Rows(6000), kNow);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->chunk, 0);
  EXPECT_EQ(second->first, 10000);
  EXPECT_EQ(memory_.chunks.size(), 1U);
  EXPECT_EQ(chunks_.Store(Rows(1000), kNow)->chunk, 1);
  EXPECT_EQ(memory_.chunks.size(), 2U);
  EXPECT_EQ(memory_.chunks[0][15999].rule, 2);
  EXPECT_EQ(chunks_.rows(), 17000U);
}

TEST_F(RowChunksTest, StaysWithinTheBudget) {
  ASSERT_TRUE(chunks_.Store(Rows(PYRO_CHUNK_ROWS), kNow).has_value());
  ASSERT_TRUE(chunks_.Store(Rows(PYRO_CHUNK_ROWS), kNow).has_value());
  EXPECT_EQ(chunks_.Store(Rows(1), kNow).error().code(), ErrorCode::kExhausted);
}

TEST_F(RowChunksTest, RefusesMoreThanAChunkHolds) {
  EXPECT_EQ(chunks_.Store(Rows(PYRO_CHUNK_ROWS + 1), kNow).error().code(), ErrorCode::kExhausted);
  EXPECT_EQ(chunks_.chunks(), 0U);
}

TEST_F(RowChunksTest, ReusesRoomAndRemovesChunksAfterTheQuarantine) {
  const auto range = chunks_.Store(Rows(PYRO_CHUNK_ROWS), kNow);
  ASSERT_TRUE(range.has_value());
  chunks_.Retire(*range, kNow);
  chunks_.Reuse(kNow);
  EXPECT_EQ(memory_.chunks.size(), 1U) << "a program may be reading it";
  chunks_.Reuse(kMuchLater);
  EXPECT_TRUE(memory_.chunks.empty());
  EXPECT_EQ(chunks_.rows(), 0U);
}

TEST_F(RowChunksTest, PassesOnWhatTheKernelSays) {
  memory_.refuse = true;
  EXPECT_EQ(chunks_.Store(Rows(1), kNow).error().code(), ErrorCode::kPermission);
}

}  // namespace
}  // namespace pyrometer
