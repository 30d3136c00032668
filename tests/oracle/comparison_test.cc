// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/comparison.h"

#include <gtest/gtest.h>

namespace pyrometer::oracle {
namespace {

UnwoundFrame At(uint64_t pc, uint64_t sp) {
  return {Address(pc), Address(sp)};
}

const std::vector<UnwoundFrame> kTruth = {At(10, 100), At(20, 200), At(30, 300)};

TEST(Comparison, ExactMeansAllFramesAndKnownToBeAll) {
  EXPECT_EQ(Compare({kTruth, StackEnd::kComplete}, kTruth), Verdict::kExact);
  EXPECT_EQ(Compare({kTruth, StackEnd::kUnreadable}, kTruth), Verdict::kUnsureEnd);
}

TEST(Comparison, FewerFramesAreWrongUnlessSaidToBeCut) {
  const std::vector<UnwoundFrame> fewer = {At(10, 100), At(20, 200)};
  EXPECT_EQ(Compare({fewer, StackEnd::kTruncated}, kTruth), Verdict::kCut);
  EXPECT_EQ(Compare({fewer, StackEnd::kComplete}, kTruth), Verdict::kWrong);
}

TEST(Comparison, FrameThatIsNotThereIsWrongHoweverItEnds) {
  const std::vector<std::vector<UnwoundFrame>> stacks = {
      {At(10, 100), At(21, 200), At(30, 300)},                // pc
      {At(10, 100), At(20, 208), At(30, 300)},                // slot
      {At(10, 100), At(30, 300)},                             // one left out
      {At(10, 100), At(20, 200), At(30, 300), At(40, 400)}};  // one too many
  for (const std::vector<UnwoundFrame>& frames : stacks) {
    EXPECT_EQ(Compare({frames, StackEnd::kComplete}, kTruth), Verdict::kWrong);
    EXPECT_EQ(Compare({frames, StackEnd::kUnreadable}, kTruth), Verdict::kWrong);
  }
}

TEST(Comparison, StackThatClaimsToBeWholeHasTheOutermostFrame) {
  EXPECT_TRUE(EndsHonestly({{At(10, 100), At(30, 300)}, StackEnd::kComplete}, kTruth));
  EXPECT_FALSE(EndsHonestly({{At(10, 100), At(20, 200)}, StackEnd::kComplete}, kTruth));
  EXPECT_TRUE(EndsHonestly({{At(10, 100), At(20, 200)}, StackEnd::kUnreadable}, kTruth));
}

TEST(Comparison, CallersOfLongjmpAreTheStackItLeadsTo) {
  const UnwoundStack unwound{{At(5, 50), At(9, 100), At(20, 200), At(30, 300)},
                             StackEnd::kComplete};
  EXPECT_EQ(Compare(CallersOf(unwound, true), kTruth), Verdict::kExact);
  EXPECT_TRUE(CallersOf({{At(5, 50)}, StackEnd::kUnreadable}, true).frames.empty());
}

TEST(Comparison, CallersOfWhatThrowsAreTheStackOfTheLandingPad) {
  const UnwoundStack unwound{{At(5, 50), At(10, 100), At(20, 200), At(30, 300)},
                             StackEnd::kComplete};
  EXPECT_EQ(Compare(CallersOf(unwound, false), kTruth), Verdict::kExact);
}

TEST(Comparison, FirstDifferenceIsTheFirstFrameThatIsNotThere) {
  EXPECT_EQ(FirstDifference({kTruth, StackEnd::kComplete}, kTruth), 3U);
  EXPECT_EQ(FirstDifference({{At(10, 100)}, StackEnd::kUnreadable}, kTruth), 1U);
  EXPECT_EQ(FirstDifference({{At(10, 100), At(20, 208)}, StackEnd::kComplete}, kTruth), 1U);
}

}  // namespace
}  // namespace pyrometer::oracle
