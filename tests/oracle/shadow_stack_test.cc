// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/shadow_stack.h"

#include <gtest/gtest.h>

#include <map>

namespace pyrometer::oracle {
namespace {

using Flow = ShadowStack::Flow;
using Change = ShadowStack::Change;

constexpr Region kMain{0x9000};
constexpr Region kOther{0x5000};

UnwoundFrame At(uint64_t pc, uint64_t sp) {
  return {Address(pc), Address(sp)};
}

// A thread at pc 1 that has called f, which has called g.
class ShadowStackTest : public testing::Test {
 protected:
  ShadowStackTest() {
    shadow_.Reset(kMain);
    Call(0x8F00, 0x101);
    Call(0x8E00, 0x201);
  }

  void Call(uint64_t slot, uint64_t return_address) {
    shadow_.Push({Address(slot), Address(return_address)});
    memory_[slot] = return_address;
    Settle(slot, Flow::kJump);
  }
  Change Settle(uint64_t sp, Flow flow, Region region = kMain) {
    return shadow_.Settle(region, Address(sp), flow, read_);
  }
  std::vector<UnwoundFrame> Frames(uint64_t sp) const {
    return shadow_.Frames(Address(1), Address(sp));
  }

  ShadowStack shadow_;
  std::map<uint64_t, uint64_t> memory_;
  ShadowStack::ReadWord read_ = [this](Address at) { return memory_[at.value()]; };
};

using Stack = std::vector<UnwoundFrame>;

TEST_F(ShadowStackTest, HasAFrameForEachCallBehindItsSlot) {
  EXPECT_EQ(Frames(0x8E00), (Stack{At(1, 0x8E00), At(0x200, 0x8E08), At(0x100, 0x8F08)}));
}

TEST_F(ShadowStackTest, ReturnLeavesOneCall) {
  EXPECT_EQ(shadow_.TopSlot(), Address(0x8E00));
  EXPECT_EQ(Settle(0x8E08, Flow::kReturn), Change::kNone);
  EXPECT_EQ(Frames(0x8E08), (Stack{At(1, 0x8E08), At(0x100, 0x8F08)}));
}

TEST_F(ShadowStackTest, ReturnAddressMayBePoppedAndPutBack) {
  EXPECT_EQ(Settle(0x8E08, Flow::kSequential), Change::kNone);
  EXPECT_EQ(Frames(0x8E08).size(), 3U);
  EXPECT_EQ(Settle(0x8E00, Flow::kSequential), Change::kNone);
  EXPECT_EQ(Frames(0x8E00).size(), 3U);
}

TEST_F(ShadowStackTest, PoppedReturnAddressIsGoneIfSomethingElseIsPushed) {
  Settle(0x8E08, Flow::kSequential);
  memory_[0x8E00] = 42;
  EXPECT_EQ(Settle(0x8E00, Flow::kSequential), Change::kIrregular);
  EXPECT_EQ(Frames(0x8E00).size(), 2U);
}

TEST_F(ShadowStackTest, JumpOutLeavesAllCallsBelow) {
  EXPECT_EQ(Settle(0x8F80, Flow::kJump), Change::kIrregular);
  EXPECT_EQ(Frames(0x8F80), (Stack{At(1, 0x8F80)}));
}

TEST_F(ShadowStackTest, HandlerStandsOnWhatItInterrupted) {
  const ShadowStack::Interrupted interrupted{kMain, Address(0x300), Address(0x8D00)};
  shadow_.EnterHandler(kMain, {Address(0x8800), Address(0x901)}, interrupted);
  EXPECT_EQ(Frames(0x8800), (Stack{At(1, 0x8800), At(0x900, 0x8808), At(0x300, 0x8D00),
                                   At(0x200, 0x8E08), At(0x100, 0x8F08)}));
  // The handler has returned, rt_sigreturn is about to be called.
  EXPECT_EQ(Settle(0x8808, Flow::kReturn), Change::kNone);
  EXPECT_EQ(Settle(0x8808, Flow::kSequential), Change::kNone);
  EXPECT_EQ(Frames(0x8808)[1], At(0x300, 0x8D00));
  shadow_.LeaveHandler();
  EXPECT_EQ(Settle(0x8D00, Flow::kJump), Change::kNone);
  EXPECT_EQ(Frames(0x8D00).size(), 3U);
}

TEST_F(ShadowStackTest, HandlerOnItsOwnStackCanBeLeftByAJump) {
  const ShadowStack::Interrupted interrupted{kMain, Address(0x300), Address(0x8D00)};
  shadow_.EnterHandler(kOther, {Address(0x4800), Address(0x901)}, interrupted);
  EXPECT_EQ(Frames(0x4800).size(), 5U);
  EXPECT_EQ(Settle(0x8F00, Flow::kJump), Change::kIrregular);
  EXPECT_EQ(Frames(0x8F00), (Stack{At(1, 0x8F00), At(0x100, 0x8F08)}));
  shadow_.EnterHandler(kOther, {Address(0x4700), Address(0x901)}, interrupted);
  EXPECT_EQ(Frames(0x4700).size(), 4U);
}

TEST_F(ShadowStackTest, ContextsKeepTheirCalls) {
  memory_[0x4F00] = 0x701;
  EXPECT_EQ(Settle(0x4F00, Flow::kSequential, kOther), Change::kIrregular);
  EXPECT_EQ(Frames(0x4F00), (Stack{At(1, 0x4F00), At(0x700, 0x4F08)}));
  EXPECT_EQ(Settle(0x8E00, Flow::kJump, kMain), Change::kIrregular);
  EXPECT_EQ(Frames(0x8E00).size(), 3U);
}

}  // namespace
}  // namespace pyrometer::oracle
