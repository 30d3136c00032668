// SPDX-License-Identifier: Apache-2.0
// The unwinder over made-up stacks. That it unwinds real ones is the oracle's to show.
#include "unwind/unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/unwind/made_process.h"
#include "tests/unit/unwind/register_rules.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;

TEST_F(UnwinderTest, FollowsTheStackPointer) {
  const uint64_t leaf = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 24));
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 16));
  const uint64_t bottom = Bottom();
  view_.Put(kStack + 16, caller);
  view_.Put(kStack + 32, bottom);
  const UnwoundStack stack = UnwindFrom(leaf);
  EXPECT_THAT(stack.frames, ElementsAre(UnwoundFrame{Address(leaf), Address(kStack)},
                                        UnwoundFrame{Address(caller - 1), Address(kStack + 24)},
                                        UnwoundFrame{Address(bottom - 1), Address(kStack + 40)}));
  EXPECT_EQ(stack.end, StackEnd::kComplete);
}

TEST_F(UnwinderTest, ReadsAReturnAddressThatIsNotAligned) {
  pyro_unwind_rule odd = FrameRule(PYRO_RULE_REGISTER, kRsp, 16);
  odd.fp = PYRO_SAVED_AT_CFA;
  odd.fp_offset = -16;
  odd.ra_offset = -12;
  const uint64_t leaf = view_.Function(odd);
  const uint64_t bottom = Bottom();
  for (uint64_t i = 0; i < 64; ++i) view_.Put(kStack + i * 8, 0x1111);
  view_.Put(kStack + 4, bottom);
  const UnwoundStack stack = UnwindFrom(leaf);
  EXPECT_THAT(AddressesOf(stack), ElementsAre(leaf, bottom - 1));
}

TEST_F(UnwinderTest, RestoresTheFramePointerForACallerThatNeedsIt) {
  pyro_unwind_rule saves = FrameRule(PYRO_RULE_REGISTER, kRsp, 24);
  saves.fp = PYRO_SAVED_AT_CFA;
  saves.fp_offset = -16;
  const uint64_t leaf = view_.Function(saves);
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRbp, 16));
  const uint64_t bottom = Bottom();
  view_.Put(kStack + 8, kStack + 0x100);
  view_.Put(kStack + 16, caller);
  view_.Put(kStack + 0x108, bottom);
  registers_.values[kRbp] = 0x1234;
  const UnwoundStack stack = UnwindFrom(leaf);
  EXPECT_THAT(AddressesOf(stack), ElementsAre(leaf, caller - 1, bottom - 1));
  EXPECT_EQ(stack.end, StackEnd::kComplete);
}

TEST_F(UnwinderTest, UsesAnyRegisterInTheLeafAndOnlyThere) {
  const uint64_t leaf = view_.Function(FrameRule(PYRO_RULE_REGISTER, 15, 8));
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, 15, 8));
  registers_.values[15] = kStack + 0x40;
  view_.Put(kStack + 0x40, caller);
  const UnwoundStack stack = UnwindFrom(leaf);
  EXPECT_THAT(AddressesOf(stack), ElementsAre(leaf, caller - 1));
  EXPECT_EQ(stack.end, StackEnd::kUnsupported);
}

TEST_F(UnwinderTest, UsesTheLeafsRegistersForACallerThatReliesOnThem) {
  const uint64_t inner_loop = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t in_rax = view_.Function(FrameRule(PYRO_RULE_REGISTER, 0, 8));
  const uint64_t in_r15 = view_.Function(FrameRule(PYRO_RULE_REGISTER, 15, 8));
  registers_.values[0] = registers_.values[15] = kStack + 0x80;
  view_.Put(kStack + 0x80, in_rax);
  view_.Put(kStack, in_rax);
  EXPECT_THAT(AddressesOf(UnwindFrom(inner_loop)), ElementsAre(inner_loop, in_rax - 1, in_rax - 1));
  view_.Put(kStack, in_r15);
  EXPECT_EQ(UnwindFrom(inner_loop).end, StackEnd::kUnsupported) << "it may have been saved";
}

TEST_F(UnwinderTest, FindsTheFrameOfARealignedStack) {
  pyro_unwind_rule realigned = FrameRule(PYRO_RULE_DEREFERENCE, kRbp, -8);
  realigned.fp = PYRO_SAVED_AT_FP;
  const uint64_t leaf = view_.Function(realigned);
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRbp, 16));
  const uint64_t bottom = Bottom();
  registers_.values[kRbp] = kStack + 0x20;
  view_.Put(kStack + 0x18, kStack + 0x60);  // the CFA
  view_.Put(kStack + 0x20, kStack + 0x100);
  view_.Put(kStack + 0x58, caller);
  view_.Put(kStack + 0x108, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(leaf)), ElementsAre(leaf, caller - 1, bottom - 1));
}

TEST_F(UnwinderTest, KeepsAFramePointerThatIsTheCallersAlready) {
  pyro_unwind_rule realigned = FrameRule(PYRO_RULE_REGISTER, 10, 0);
  realigned.fp = PYRO_SAVED_AT_FP;
  const uint64_t leaf = view_.Function(realigned);
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRbp, 16));
  const uint64_t bottom = Bottom();
  registers_.values[10] = kStack + 0x40;
  registers_.values[kRbp] = kStack + 0x60;
  view_.Put(kStack + 0x38, caller);
  view_.Put(kStack + 0x60, kStack + 0x100);  // of the caller's caller
  view_.Put(kStack + 0x68, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(leaf)), ElementsAre(leaf, caller - 1, bottom - 1));
}

TEST_F(UnwinderTest, KnowsWhetherAPltStubHasPushed) {
  pyro_unwind_rule plt = FrameRule(PYRO_RULE_PLT, kRsp, 8);
  plt.cfa_add = 11;
  const uint64_t stub = view_.Function(plt);
  const uint64_t bottom = Bottom();
  view_.Put(kStack, bottom);
  view_.Put(kStack + 8, bottom + 0x20);
  EXPECT_THAT(AddressesOf(UnwindFrom(stub + 10)), ElementsAre(stub + 10, bottom - 1));
  EXPECT_THAT(AddressesOf(UnwindFrom(stub + 11)), ElementsAre(stub + 11, bottom + 0x1f));
}

TEST_F(UnwinderTest, CarriesRbxThroughFramesThatSaveIt) {
  pyro_unwind_rule saves = FrameRule(PYRO_RULE_REGISTER, kRsp, 32);
  saves.rbx_offset = -24;
  const uint64_t leaf = view_.Function(saves);
  const uint64_t resolver = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRbx, 16));
  const uint64_t bottom = Bottom();
  view_.Put(kStack + 8, kStack + 0x200);
  view_.Put(kStack + 24, resolver);
  view_.Put(kStack + 0x208, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(leaf)), ElementsAre(leaf, resolver - 1, bottom - 1));

  saves.rbx_offset = PYRO_RBX_LOST;
  EXPECT_EQ(UnwindFrom(view_.Function(saves)).end, StackEnd::kUnsupported);
}

TEST_F(UnwinderTest, TakesAReturnAddressFromARegister) {
  pyro_unwind_rule rule = FrameRule(PYRO_RULE_REGISTER, kRsp, 0);
  rule.ra = PYRO_SAVED_IN_REGISTER;
  rule.ra_offset = 5;
  const uint64_t leaf = view_.Function(rule);
  const uint64_t bottom = Bottom();
  registers_.values[5] = bottom;
  view_.Put(kStack, 0);
  EXPECT_THAT(AddressesOf(UnwindFrom(leaf)), ElementsAre(leaf, bottom - 1));
}

TEST_F(UnwinderTest, TakesAReturnAddressFromWhereTheFramePointerPoints) {
  pyro_unwind_rule rule = FrameRule(PYRO_RULE_REGISTER, kRsp, 16);
  rule.ra = PYRO_SAVED_AT_FP;
  rule.ra_offset = 8;
  const uint64_t leaf = view_.Function(rule);
  const uint64_t bottom = Bottom();
  registers_.values[kRbp] = kStack + 0x100;
  view_.Put(kStack + 0x108, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(leaf)), ElementsAre(leaf, bottom - 1));
  registers_.values[kRbp] = kStack + 0x200;
  EXPECT_EQ(UnwindFrom(leaf).end, StackEnd::kUnreadable);
}

TEST_F(UnwinderTest, GoesThroughASignalFrameToTheVeryInstruction) {
  const uint64_t handler = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t restorer = view_.Function(RuleOfKind(PYRO_RULE_SIGNAL));
  // Its rule needs a register that only an interrupted function still has.
  const uint64_t interrupted = view_.Function(FrameRule(PYRO_RULE_REGISTER, 12, 8));
  const uint64_t bottom = Bottom();
  view_.Put(kStack, restorer + 1);
  const uint64_t registers = kStack + 8 + 40;
  for (uint64_t i = 0; i < 17; ++i) view_.Put(registers + i * 8, 0);
  view_.Put(registers + 4 * 8, kStack + 0x400);  // r12
  view_.Put(registers + 15 * 8, kStack + 0x380);
  view_.Put(registers + 16 * 8, interrupted);
  view_.Put(kStack + 0x400, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(handler)),
              ElementsAre(handler, restorer, interrupted, bottom - 1));
}

TEST_F(UnwinderTest, FallsBackToTheFramePointerWhereNothingCoversTheCode) {
  const uint64_t bottom = Bottom();
  registers_.values[kRbp] = kStack + 0x10;
  view_.Put(kStack + 0x10, kStack + 0x40);
  view_.Put(kStack + 0x18, kPlain + 0x500);
  view_.Put(kStack + 0x40, 0x77);
  view_.Put(kStack + 0x48, bottom);
  const UnwoundStack stack = UnwindFrom(kJit + 4);
  EXPECT_THAT(AddressesOf(stack), ElementsAre(kJit + 4, kPlain + 0x4ff, bottom - 1));
  EXPECT_EQ(stack.end, StackEnd::kComplete);
}

TEST_F(UnwinderTest, TakesNoStackForWholeWithAFrameWhoseRulesCouldNotBeRead) {
  const uint64_t bottom = Bottom();
  registers_.values[kRbp] = kStack + 0x10;  // which may be that of the caller's caller
  view_.Put(kStack + 0x10, kStack + 0x40);
  view_.Put(kStack + 0x18, bottom);
  const UnwoundStack stack = UnwindFrom(kUnread + 4);
  EXPECT_THAT(AddressesOf(stack), ElementsAre(kUnread + 4, bottom - 1));
  EXPECT_EQ(stack.end, StackEnd::kNotReady);
  view_.Put(kStack + 0x10, 0);
  view_.Put(kStack + 0x18, kPlain + 0x500);
  EXPECT_EQ(UnwindFrom(kUnread + 4).end, StackEnd::kNotReady) << "nor by its last frame pointer";
  view_.Put(kStack + 0x18, 0x4141414141);
  EXPECT_EQ(UnwindFrom(kUnread + 4).end, StackEnd::kNotReady) << "and that is why nothing is found";
  view_.Put(kStack + 0x10, kStack + 0x40);
  view_.Put(kStack + 0x18, kPlain + 0x500);
  view_.Put(kStack + 0x40, kStack + 0x60);
  view_.Put(kStack + 0x48, 0x4141414141);
  EXPECT_EQ(UnwindFrom(kUnread + 4).end, StackEnd::kNoUnwindInfo) << "a caller's reason stays";
}

TEST_F(UnwinderTest, EndsWhereACallerHasANullFramePointer) {
  registers_.values[kRbp] = kStack + 0x10;
  view_.Put(kStack + 0x10, 0);
  view_.Put(kStack + 0x18, kPlain + 0x500);
  EXPECT_EQ(UnwindFrom(kPlain + 4).end, StackEnd::kComplete);
}

TEST_F(UnwinderTest, TakesNoNullThatJitCodeReadsForTheRoot) {
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.Put(kStack, kJit + 0x500);
  registers_.values[kRbp] = 0;
  const UnwoundStack unused = UnwindFrom(caller);
  EXPECT_THAT(AddressesOf(unused), ElementsAre(caller, kJit + 0x4ff));
  EXPECT_EQ(unused.end, StackEnd::kJit) << "rbp need not be a frame pointer there";

  registers_.values[kRbp] = kStack + 0x10;
  view_.Put(kStack + 0x10, kStack + 0x40);
  view_.Put(kStack + 0x18, 0);
  EXPECT_EQ(UnwindFrom(caller).end, StackEnd::kJit) << "nor point to one";
  EXPECT_EQ(UnwindFrom(kJit + 4).end, StackEnd::kJit);
}

TEST_F(UnwinderTest, FollowsFramePointersOutOfJitCodeToTheRoot) {
  registers_.values[kRbp] = kStack + 0x10;
  view_.Put(kStack + 0x10, 0);
  view_.Put(kStack + 0x18, kPlain + 0x500);
  const UnwoundStack stack = UnwindFrom(kJit + 4);
  EXPECT_THAT(AddressesOf(stack), ElementsAre(kJit + 4, kPlain + 0x4ff));
  EXPECT_EQ(stack.end, StackEnd::kComplete);
}

TEST_F(UnwinderTest, BlamesJitCodeForWhereItsFramePointerLeads) {
  registers_.values[kRbp] = kStack + 0x10;
  view_.Put(kStack + 0x10, kStack + 0x40);
  for (const uint64_t nowhere : {uint64_t{0x41}, uint64_t{0x4141414141}}) {
    view_.Put(kStack + 0x18, nowhere);
    EXPECT_EQ(UnwindFrom(kJit + 4).end, StackEnd::kJit) << nowhere;
  }
}

TEST_F(UnwinderTest, DoesNotTakeALeafWithoutFramePointerForTheRoot) {
  registers_.values[kRbp] = 0;
  EXPECT_EQ(UnwindFrom(kPlain + 4).end, StackEnd::kNoUnwindInfo);
  EXPECT_EQ(UnwindFrom(kJit + 4).end, StackEnd::kJit);
}

TEST_F(UnwinderTest, NeverEmitsAFrameThatAFramePointerOnlyPretends) {
  for (const uint64_t fp : {kStack - 8, kStack + 4, kStack + (uint64_t{9} << 20), kStack + 0x90}) {
    registers_.values[kRbp] = fp;
    view_.Put(kStack + 0x90, kStack + 0x100);
    view_.Put(kStack + 0x98, 0x4141414141);  // no executable memory
    const UnwoundStack stack = UnwindFrom(kPlain + 4);
    EXPECT_THAT(AddressesOf(stack), ElementsAre(kPlain + 4)) << fp;
    EXPECT_EQ(stack.end, StackEnd::kNoUnwindInfo) << fp;
  }
}

TEST_F(UnwinderTest, SaysThatAReturnAddressLeadsNowhere) {
  const uint64_t leaf = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.Put(kStack, 0x4141414141);
  EXPECT_EQ(UnwindFrom(leaf).end, StackEnd::kBadReturnAddress);
  view_.Put(kStack, 0);
  EXPECT_EQ(UnwindFrom(leaf).end, StackEnd::kBadReturnAddress);
}

TEST_F(UnwinderTest, EndsWhereACallerHasANullReturnAddress) {
  const uint64_t leaf = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t first = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.Put(kStack, first);
  view_.Put(kStack + 8, 0);
  EXPECT_EQ(UnwindFrom(leaf).end, StackEnd::kComplete);
}

TEST_F(UnwinderTest, TakesNoNullForTheRootWhileAnExceptionLeavesFunctions) {
  pyro_unwind_rule leaving = FrameRule(PYRO_RULE_LEAVING, kRsp, 8);
  leaving.fp = PYRO_SAVED_LOST;
  const uint64_t resume = view_.Function(leaving);
  const uint64_t left = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.Put(kStack, left);
  view_.Put(kStack + 8, 0);
  EXPECT_THAT(AddressesOf(UnwindFrom(resume)), ElementsAre(resume, left - 1));
  EXPECT_EQ(UnwindFrom(resume).end, StackEnd::kBadReturnAddress);
  view_.Put(kStack + 8, kPlain + 0x500);
  EXPECT_EQ(UnwindFrom(resume).end, StackEnd::kNoUnwindInfo);
  view_.Put(kStack + 8, Bottom());
  EXPECT_EQ(UnwindFrom(resume).end, StackEnd::kComplete) << "call frame information says so";
}

TEST_F(UnwinderTest, GoesWithAnExceptionToTheVeryFirstInstructionOfALandingPad) {
  const uint64_t resume = view_.Function(FrameRule(PYRO_RULE_LEAVING, kRsp, 8));
  view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t pad = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 16)) - 0x10;
  view_.Put(kStack, pad);
  const uint64_t bottom = Bottom();
  view_.Put(kStack + 16, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(resume)), ElementsAre(resume, pad, bottom - 1));
}

TEST_F(UnwinderTest, SaysThatTheFrameAddressLeadsNowhere) {
  const uint64_t down = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, -64));
  EXPECT_EQ(UnwindFrom(down).end, StackEnd::kBadCfa);
  const uint64_t askew = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 12));
  EXPECT_EQ(UnwindFrom(askew).end, StackEnd::kBadCfa);
  const uint64_t leaf = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t caller = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 0));
  view_.Put(kStack, caller);
  EXPECT_EQ(UnwindFrom(leaf).end, StackEnd::kBadCfa) << "a caller's frame is never empty";
}

TEST_F(UnwinderTest, GoesToAnotherStackWhereTheRuleSaysSo) {
  const uint64_t switched = view_.Function(FrameRule(PYRO_RULE_SWITCHED, kRsp, -64));
  const uint64_t bottom = Bottom();
  view_.Put(kStack - 72, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(switched)), ElementsAre(switched, bottom - 1));
  EXPECT_EQ(UnwindFrom(switched).end, StackEnd::kComplete);
  const uint64_t askew = view_.Function(FrameRule(PYRO_RULE_SWITCHED, kRsp, 12));
  EXPECT_EQ(UnwindFrom(askew).end, StackEnd::kBadCfa);
}

TEST_F(UnwinderTest, SaysThatTheStackCannotBeRead) {
  EXPECT_EQ(UnwindFrom(view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8))).end,
            StackEnd::kUnreadable);
}

TEST_F(UnwinderTest, StopsAtTheFrameLimit) {
  const uint64_t function = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  for (uint64_t i = 0; i < 600; ++i) view_.Put(kStack + i * 8, function);
  const UnwoundStack stack = UnwindFrom(function);
  EXPECT_EQ(stack.end, StackEnd::kTruncated);
  EXPECT_EQ(stack.frames.size(), 512U);
}

TEST_F(UnwinderTest, EvaluatesWhatTheKernelSideCannot) {
  const uint64_t leaf = view_.Function(RuleOfKind(PYRO_RULE_EXOTIC));  // number 0
  const uint64_t bottom = Bottom();
  // DW_OP_breg7 16, DW_OP_plus_uconst 8
  const std::vector<std::byte> expression = {std::byte{0x77}, std::byte{16}, std::byte{0x23},
                                             std::byte{8}};
  ExoticRule rule;
  rule.cfa.kind = RegisterRule::Kind::kValueExpression;
  rule.cfa.expression = expression;
  RegisterRule at_cfa;
  at_cfa.kind = RegisterRule::Kind::kAtCfa;
  at_cfa.offset = -8;
  rule.registers = {{.reg = 16, .rule = at_cfa}};
  rule.return_address = 16;
  view_.AddExotic(rule);
  view_.Put(kStack + 16, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(leaf)), ElementsAre(leaf, bottom - 1));
}

TEST_F(UnwinderTest, GoesFromASignalStackToOneThatLiesBelow) {
  constexpr uint64_t kBelow = kStack - 0x1000;
  const uint64_t restorer = view_.Function(RuleOfKind(PYRO_RULE_EXOTIC));  // number 0
  const uint64_t interrupted = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  const uint64_t bottom = Bottom();
  view_.AddExotic({.cfa = InRegister(kRbp),
                   .registers = {{.reg = 16, .rule = AtCfa(-8)}},
                   .return_address = 16,
                   .signal_frame = true});
  registers_.values[kRbp] = kBelow;
  view_.Put(kBelow - 8, interrupted);
  view_.Put(kBelow, bottom);
  EXPECT_THAT(AddressesOf(UnwindFrom(restorer)), ElementsAre(restorer, interrupted, bottom - 1));
}

TEST_F(UnwinderTest, TakesNoFrameFromAStackThatIsNoUserMemory) {
  // In its first step nothing of a stack has been read.
  for (const uint64_t fp : {uint64_t{1} << 63, (uint64_t{1} << 63) + 0x100}) {
    registers_.pc = Address(kPlain + 4);
    registers_.values[kRsp] = registers_.values[kRbp] = fp;
    EXPECT_EQ(Unwind(registers_, view_).end, StackEnd::kNoUnwindInfo);
  }
}

TEST_F(UnwinderTest, KeepsTheLeafWhereverItIs) {
  const UnwoundStack stack = UnwindFrom(0x4141414141);
  EXPECT_THAT(AddressesOf(stack), ElementsAre(0x4141414141));
  EXPECT_EQ(stack.end, StackEnd::kNoUnwindInfo);
}

TEST_F(UnwinderTest, LooksUpTheInstructionOfASystemCall) {
  const uint64_t leaf = view_.Function(FrameRule(PYRO_RULE_REGISTER, kRsp, 8));
  view_.Put(kStack, 0);
  registers_.after_call = true;
  EXPECT_THAT(AddressesOf(UnwindFrom(leaf)), ElementsAre(leaf - 1));
}

}  // namespace
}  // namespace pyrometer
