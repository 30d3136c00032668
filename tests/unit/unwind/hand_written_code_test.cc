// SPDX-License-Identifier: Apache-2.0
// The search for the callers of code without rules.
#include "unwind/unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/unwind/made_process.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;

class HandWrittenCodeTest : public UnwinderTest {};

TEST_F(HandWrittenCodeTest, FindsTheCallerOfHandWrittenCode) {
  const uint64_t stale = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 0x800));
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 16));
  const uint64_t bottom = Bottom();
  view_.PutCall(stale);
  view_.PutCall(caller);
  view_.PutCall(bottom);
  view_.Put(kStack, caller + 2);          // behind no call
  view_.Put(kStack + 8, kStack + 0x100);  // no code
  view_.Put(kStack + 16, stale);          // its own caller cannot be found
  view_.Put(kStack + 24, caller);
  view_.Put(kStack + 32, 0);
  view_.Put(kStack + 40, bottom);
  const UnwoundStack stack = UnwindFrom(FakeView::HandWritten());
  EXPECT_THAT(AddressesOf(stack), ElementsAre(FakeView::HandWritten(), caller - 1, bottom - 1));
  EXPECT_EQ(stack.end, StackEnd::kComplete);
}

TEST_F(HandWrittenCodeTest, FollowsHandWrittenFunctionsThatCallEachOther) {
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t bottom = Bottom();
  const uint64_t outer = FakeView::HandWritten() + 0x40;
  const uint64_t elsewhere = FakeView::HandWritten() + 0x60;
  view_.PutCall(outer, FakeView::HandWritten() - 0x20);
  view_.PutCall(elsewhere, outer);  // does not lead to the leaf
  view_.PutCall(caller);
  view_.Put(kStack, elsewhere);
  view_.Put(kStack + 8, outer);
  view_.Put(kStack + 16, 0);
  view_.Put(kStack + 24, caller);
  view_.Put(kStack + 32, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(FakeView::HandWritten())),
              ElementsAre(FakeView::HandWritten(), outer - 1, caller - 1, bottom - 1));
}

TEST_F(HandWrittenCodeTest, FollowsThemBeyondTheWordsThatTheKernelTries) {
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t bottom = Bottom();
  const uint64_t outer = FakeView::HandWritten() + 0x40;
  view_.PutCall(outer, FakeView::HandWritten() - 0x20);
  view_.PutCall(caller);
  FillStack(0);
  view_.Put(kStack + 2048, outer);
  view_.Put(kStack + 2064, caller);
  view_.Put(kStack + 2072, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(FakeView::HandWritten())),
              ElementsAre(FakeView::HandWritten(), outer - 1, caller - 1, bottom - 1));
}

TEST_F(HandWrittenCodeTest, DoesNotSkipACallerOfWhichNothingIsKnownYet) {
  const uint64_t further_up = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 16));
  const uint64_t bottom = Bottom();
  view_.PutCall(further_up);
  view_.PutCall(bottom);
  view_.Put(kStack, kUnknown + 0x10);
  view_.Put(kStack + 8, further_up);
  view_.Put(kStack + 16, 0);
  view_.Put(kStack + 24, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(FakeView::HandWritten())),
              ElementsAre(FakeView::HandWritten(), further_up - 1, bottom - 1))
      << "no call precedes the word";
  view_.PutCall(kUnknown + 0x10);
  EXPECT_THAT(AddressesOf(UnwindFrom(FakeView::HandWritten())),
              ElementsAre(FakeView::HandWritten()));
}

TEST_F(HandWrittenCodeTest, DoesNotSkipTheCallersOfHandWrittenCode) {
  const uint64_t further_up = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  registers_.values[kRbp] = kStack + 0x1000;
  for (uint64_t i = 0; i < 600; ++i) view_.Put(kStack + i * 8, 0x1234);
  view_.Put(kStack + 0x1000, 0);
  view_.Put(kStack + 0x1008, further_up);
  const UnwoundStack stack = UnwindFrom(FakeView::HandWritten());
  EXPECT_THAT(AddressesOf(stack), ElementsAre(FakeView::HandWritten()));
  EXPECT_EQ(stack.end, StackEnd::kNoUnwindInfo);

  view_.Put(kStack + 0x1008, kJit + 0x10);
  EXPECT_THAT(AddressesOf(UnwindFrom(FakeView::HandWritten())),
              ElementsAre(FakeView::HandWritten(), kJit + 0xf));
}

TEST_F(HandWrittenCodeTest, FindsAFramePointerThatHandWrittenCodeHasPushed) {
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRbp, 16));
  const uint64_t bottom = Bottom();
  view_.PutCall(caller);
  registers_.values[kRbp] = 0x1111;
  view_.Put(kStack, 0x2222);
  view_.Put(kStack + 8, kStack + 0x100);  // the caller's rbp
  view_.Put(kStack + 16, caller);
  view_.Put(kStack + 0x108, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(FakeView::HandWritten())),
              ElementsAre(FakeView::HandWritten(), caller - 1, bottom - 1));
}

TEST_F(HandWrittenCodeTest, SaysThatHandWrittenCodeHidesItsCaller) {
  for (uint64_t i = 0; i < 600; ++i) view_.Put(kStack + i * 8, 0x1234);
  const UnwoundStack stack = UnwindFrom(FakeView::HandWritten());
  EXPECT_THAT(AddressesOf(stack), ElementsAre(FakeView::HandWritten()));
  EXPECT_EQ(stack.end, StackEnd::kNoUnwindInfo);
}

}  // namespace
}  // namespace pyrometer
