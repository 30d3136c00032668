// SPDX-License-Identifier: Apache-2.0
// What the unwinding of one stack may cost.
#include "unwind/unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/unwind/made_process.h"
#include "tests/unit/unwind/register_rules.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;

class UnwindBudgetTest : public UnwinderTest {};

TEST_F(UnwindBudgetTest, GivesUpOnAStackFullOfCallersThatLeadNowhere) {
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.PutCall(caller);
  FillStack(caller);
  EXPECT_TRUE(UnwindFrom(FakeView::HandWritten()).over_budget);
  EXPECT_LE(view_.questions(), 20'000) << "not from every one of them to the end";
}

TEST_F(UnwindBudgetTest, KeepsWhatItFoundWithinItsSteps) {
  const uint64_t function = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  for (uint64_t i = 0; i < 600; ++i) view_.Put(kStack + i * 8, function);
  registers_.pc = Address(function);
  registers_.values[kRsp] = kStack;
  const UnwoundStack stack = Unwind(registers_, view_, {.most_steps = 100});
  EXPECT_EQ(stack.end, StackEnd::kTruncated);
  EXPECT_TRUE(stack.over_budget);
  EXPECT_GT(stack.frames.size(), 40U);
  EXPECT_LT(stack.frames.size(), 100U);
  EXPECT_EQ(view_.questions(), 100);
}

TEST_F(UnwindBudgetTest, DoesNotCallAWholeStackTruncatedThatTakesAllItsSteps) {
  const uint64_t leaf = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.Put(kStack, Bottom());
  EXPECT_FALSE(UnwindFrom(leaf).over_budget);
  const auto needed = static_cast<uint32_t>(view_.questions());
  EXPECT_EQ(Unwind(registers_, view_, {.most_steps = needed}).end, StackEnd::kComplete);
  EXPECT_EQ(Unwind(registers_, view_, {.most_steps = needed - 1}).end, StackEnd::kTruncated);
}

TEST_F(UnwindBudgetTest, KeepsWhatItFoundInItsTime) {
  const uint64_t function = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  for (uint64_t i = 0; i < 600; ++i) view_.Put(kStack + i * 8, function);
  registers_.pc = Address(function);
  registers_.values[kRsp] = kStack;
  // A clock that every look moves on.
  uint64_t now = 0;
  const UnwindBudget budget = {.most_time = std::chrono::nanoseconds(2),
                               .now = [&] { return MonotonicTime(now++); }};
  const UnwoundStack stack = Unwind(registers_, view_, budget);
  EXPECT_EQ(stack.end, StackEnd::kTruncated);
  EXPECT_TRUE(stack.over_budget);
  EXPECT_EQ(view_.questions(), 3 * 64 - 1) << "the third look is too late";
}

TEST_F(UnwindBudgetTest, CountsTheExpressionsThatItEvaluates) {
  const uint64_t leaf = view_.Function(RuleOfKind(PYRO_RULE_EXOTIC));  // number 0
  view_.AddExotic({.cfa = InRegister(kRsp, 8),
                   .registers = {20, {.reg = 16, .rule = AtCfa(-8)}},
                   .return_address = 16});
  view_.Put(kStack, Bottom());
  EXPECT_EQ(UnwindFrom(leaf).end, StackEnd::kComplete);
  const auto questions = static_cast<uint32_t>(view_.questions());
  EXPECT_EQ(Unwind(registers_, view_, {.most_steps = questions}).end, StackEnd::kTruncated);
  EXPECT_EQ(Unwind(registers_, view_, {.most_steps = questions + 21}).end, StackEnd::kComplete);
}

TEST_F(UnwindBudgetTest, SearchesForHandWrittenCallersWithinItsSteps) {
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.PutCall(caller);
  FillStack(caller);
  registers_.pc = Address(FakeView::HandWritten());
  registers_.values[kRsp] = kStack;
  const UnwoundStack stack = Unwind(registers_, view_, {.most_steps = 1000});
  EXPECT_THAT(AddressesOf(stack), ElementsAre(FakeView::HandWritten()));
  EXPECT_EQ(stack.end, StackEnd::kTruncated);
  EXPECT_EQ(view_.questions(), 1000);
}

TEST_F(UnwindBudgetTest, GuessesNoCallersThatItHasNoStepsLeftToConfirm) {
  const uint64_t caller = view_.Function(RuleOfKind(PYRO_RULE_EXOTIC));  // number 0
  view_.AddExotic({.cfa = InRegister(kRsp, 8),
                   .registers = {20, {.reg = 16, .rule = AtCfa(-8)}},
                   .return_address = 16});
  view_.PutCall(caller);
  FillStack(0x1234);
  view_.Put(kStack + 200 * 8, caller);
  view_.Put(kStack + 201 * 8, Bottom());
  const uint64_t leaf = FakeView::HandWritten();
  EXPECT_EQ(UnwindFrom(leaf).frames.size(), 3U);
  const auto needed = static_cast<uint32_t>(view_.questions() + 21);
  for (uint32_t missing = 1; missing <= 30; ++missing) {
    const UnwoundStack stack = Unwind(registers_, view_, {.most_steps = needed - missing});
    EXPECT_THAT(AddressesOf(stack), ElementsAre(leaf)) << missing;
    EXPECT_EQ(stack.end, StackEnd::kTruncated) << missing;
  }
}

TEST_F(UnwindBudgetTest, GivesUpOnAStackFullOfHandWrittenCallers) {
  const uint64_t outer = FakeView::HandWritten() + 0x40;
  view_.PutCall(outer, FakeView::HandWritten() - 0x20);
  FillStack(outer);
  EXPECT_EQ(UnwindFrom(FakeView::HandWritten()).end, StackEnd::kNoUnwindInfo);
  EXPECT_LT(view_.lookups(), 20'000) << "not along every path among them";
}

}  // namespace
}  // namespace pyrometer
