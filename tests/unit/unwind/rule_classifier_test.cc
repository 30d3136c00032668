// SPDX-License-Identifier: Apache-2.0
#include "unwind/rule_classifier.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/unwind/made_object.h"
#include "tests/unit/unwind/printed_rule.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

struct Case {
  const char* name;
  DwarfBytes instructions;
  std::string rule;
};

std::string RuleOf(const DwarfBytes& instructions, const CieSpec& cie = {}, int machine = EM_X86_64,
                   uint64_t offset = 0) {
  MadeObject object = OneFunction(instructions, 0x100, cie);
  object.machine = machine;
  const Result<UnwindTable> table = CompileUnwindTable(object.Open());
  return table ? RuleTextAt(*table, kText + offset) : table.error().message();
}

DwarfBytes Cfa(const DwarfBytes& expression) {
  return DwarfBytes({DW_CFA_def_cfa_expression}).Block(expression);
}

DwarfBytes PltStubs(int pushed_from) {
  return Cfa({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit0 + pushed_from,
              DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus});
}

// The CFI of glibc's __restore_rt, as far as it matters.
DwarfBytes SignalFrame(uint64_t rsp_at, uint64_t rip_at) {
  DwarfBytes bytes =
      Cfa(DwarfBytes({DW_OP_breg7}).Sleb(static_cast<int64_t>(rsp_at)).U8(DW_OP_deref));
  return bytes.U8(DW_CFA_expression)
      .U8(16)
      .Block(DwarfBytes({DW_OP_breg7}).Sleb(static_cast<int64_t>(rip_at)));
}

TEST(RuleClassifier, KnowsWhatCompilersSay) {
  const Case cases[] = {
      {"large frame", DwarfBytes({DW_CFA_def_cfa_offset}).Uleb(1 << 20),
       "cfa=r7+1048576 fp=same ra=[cfa-8] rbx=same"},
      {"CFA in any register", {DW_CFA_def_cfa, 15, 24}, "cfa=r15+24 fp=same ra=[cfa-8] rbx=same"},
      {"realigned stack",
       Cfa({DW_OP_breg6, 0x78, DW_OP_deref}).Append({DW_CFA_expression, 6, 2, DW_OP_breg6, 0}),
       "cfa=[r6-8]+0 fp=[fp+0] ra=[cfa-8] rbx=same"},
      {"saved stack pointer", Cfa({DW_OP_breg7, 56, DW_OP_deref, DW_OP_plus_uconst, 8}),
       "cfa=[r7+56]+8 fp=same ra=[cfa-8] rbx=same"},
      {"the same with a literal", Cfa({DW_OP_breg7, 56, DW_OP_deref, DW_OP_lit8, DW_OP_plus}),
       "cfa=[r7+56]+8 fp=same ra=[cfa-8] rbx=same"},
      {"PLT", PltStubs(11), "cfa=r7+8+plt11 fp=same ra=[cfa-8] rbx=same"},
      {"PLT with IBT", PltStubs(10), "cfa=r7+8+plt10 fp=same ra=[cfa-8] rbx=same"},
      {"return address by frame pointer",
       {DW_CFA_expression, 16, 2, DW_OP_breg6, 8},
       "cfa=r7+8 fp=same ra=[fp+8] rbx=same"},
  };
  for (const Case& c : cases) EXPECT_EQ(RuleOf(c.instructions), c.rule) << c.name;
}

TEST(RuleClassifier, FollowsRbx) {
  const Case cases[] = {
      {"saved", {DW_CFA_offset | 3, 2}, "cfa=r7+8 fp=same ra=[cfa-8] rbx=[cfa-16]"},
      {"lost", {DW_CFA_undefined, 3}, "cfa=r7+8 fp=same ra=[cfa-8]"},
      {"in another register", {DW_CFA_register, 3, 12}, "cfa=r7+8 fp=same ra=[cfa-8]"},
      {"by frame pointer",
       {DW_CFA_expression, 3, 2, DW_OP_breg6, 0x70},
       "cfa=r7+8 fp=same ra=[cfa-8]"},
      {"at the CFA itself", {DW_CFA_offset | 3, 0}, "cfa=r7+8 fp=same ra=[cfa-8]"},
      {"far away", DwarfBytes({DW_CFA_offset | 3}).Uleb(5000), "cfa=r7+8 fp=same ra=[cfa-8]"},
      {"nearly", DwarfBytes({DW_CFA_offset | 3}).Uleb(4096), "cfa=r7+8 fp=same ra=[cfa-8]"},
  };
  for (const Case& c : cases) EXPECT_EQ(RuleOf(c.instructions), c.rule) << c.name;
}

// As GCC describes _Unwind_Resume of libgcc, which has __builtin_eh_return.
TEST(RuleClassifier, TellsFunctionsThatLeaveTheirCallers) {
  const DwarfBytes resume = {DW_CFA_advance_loc | 5,
                             DW_CFA_def_cfa_offset,
                             16,
                             DW_CFA_offset | 6,
                             2,
                             DW_CFA_advance_loc | 3,
                             DW_CFA_def_cfa_register,
                             6,
                             DW_CFA_advance_loc | 8,
                             DW_CFA_offset | 3,
                             7,
                             DW_CFA_offset | 1,
                             8,
                             DW_CFA_offset | 0,
                             9,
                             DW_CFA_advance_loc | 16,
                             DW_CFA_def_cfa,
                             2,
                             8,
                             DW_CFA_restore | 6};
  const auto at = [&](uint64_t offset) { return RuleOf(resume, {}, EM_X86_64, offset); };
  EXPECT_EQ(at(0), "cfa=r7+8 fp=same ra=[cfa-8] rbx=same");
  EXPECT_EQ(at(8), "cfa=r6+16 fp=[cfa-16] ra=[cfa-8] rbx=same");
  EXPECT_EQ(at(16), "leaving cfa=r6+16 fp=[cfa-16] ra=[cfa-8] rbx=[cfa-56]");
  EXPECT_EQ(at(32), "leaving cfa=r2+8 fp=same ra=[cfa-8] rbx=[cfa-56]");
}

TEST(RuleClassifier, TellsFunctionsOfArm64ThatLeaveTheirCallers) {
  const CieSpec arm64 = {
      .code_alignment = 4, .return_address = 30, .instructions = {DW_CFA_def_cfa, 31, 0}};
  const auto at_return = [&](const DwarfBytes& saves) {
    DwarfBytes bytes = {DW_CFA_def_cfa_offset, 64, DW_CFA_offset | 29, 8, DW_CFA_offset | 30, 7};
    bytes.Append(saves).Append({DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 0,
                                DW_CFA_restore | 29, DW_CFA_restore | 30});
    return RuleOf(bytes, arm64, EM_AARCH64, 16);
  };
  const DwarfBytes exception = {DW_CFA_offset | 0, 6, DW_CFA_offset | 1, 5,
                                DW_CFA_offset | 2, 4, DW_CFA_offset | 3, 3};
  EXPECT_EQ(at_return(exception), "leaving cfa=r31+0 fp=same ra=same");
  EXPECT_EQ(at_return({DW_CFA_offset | 0, 6, DW_CFA_offset | 1, 5}), "cfa=r31+0 fp=same ra=same");
  DwarfBytes more = exception;
  more.Append({DW_CFA_offset | 4, 2});
  EXPECT_EQ(at_return(more), "cfa=r31+0 fp=same ra=same");
}

// With other calling conventions functions save rax and rdx, too.
TEST(RuleClassifier, DoesNotTakeAFunctionThatPreservesAllRegistersForOneThatLeaves) {
  // As clang describes __attribute__((preserve_most)).
  const DwarfBytes preserve_most = {
      DW_CFA_def_cfa_offset, 80, DW_CFA_offset | 0, 9, DW_CFA_offset | 2,  8,
      DW_CFA_offset | 1,     7,  DW_CFA_offset | 4, 6, DW_CFA_offset | 5,  5,
      DW_CFA_offset | 8,     4,  DW_CFA_offset | 9, 3, DW_CFA_offset | 10, 2};
  const std::string plain = "cfa=r7+80 fp=same ra=[cfa-8] rbx=same";
  EXPECT_EQ(RuleOf(preserve_most), plain);
  DwarfBytes with_frame_pointer = preserve_most;
  with_frame_pointer.Append({DW_CFA_offset | 6, 10});
  EXPECT_EQ(RuleOf(with_frame_pointer), "cfa=r7+80 fp=[cfa-80] ra=[cfa-8] rbx=same");
  const DwarfBytes frame_pointer_untouched = {DW_CFA_def_cfa_offset, 80, DW_CFA_offset | 0, 9,
                                              DW_CFA_offset | 1,     7};
  EXPECT_EQ(RuleOf(frame_pointer_untouched), plain);
}

TEST(RuleClassifier, LeavesTheRestToUserSpace) {
  const Case cases[] = {
      {"other expression", Cfa({DW_OP_breg7, 8, DW_OP_breg0, 0, DW_OP_plus}), ""},
      {"other PLT",
       Cfa({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge,
            DW_OP_lit4, DW_OP_shl, DW_OP_plus}),
       ""},
      {"CFA by program counter", {DW_CFA_def_cfa, 16, 8}, ""},
      {"frame pointer in a register", {DW_CFA_register, 6, 11}, ""},
      {"frame pointer far away", DwarfBytes({DW_CFA_offset | 6}).Uleb(5000), ""},
      {"frame pointer by another", {DW_CFA_expression, 6, 2, DW_OP_breg10, 0}, ""},
      {"frame pointer computed", {DW_CFA_val_offset, 6, 2}, ""},
      {"stack pointer saved", {DW_CFA_offset | 7, 2}, ""},
      {"return address unchanged", {DW_CFA_same_value, 16}, ""},
      {"return address computed", {DW_CFA_val_offset, 16, 2}, ""},
  };
  for (const Case& c : cases) EXPECT_EQ(RuleOf(c.instructions), "exotic 0") << c.name;
}

TEST(RuleClassifier, AcceptsThatTheStackPointerIsTheCfa) {
  EXPECT_EQ(RuleOf({DW_CFA_val_offset, 7, 0}), "cfa=r7+8 fp=same ra=[cfa-8] rbx=same");
}

TEST(RuleClassifier, TellsTheKernelsSignalFrameFromOthers) {
  const CieSpec signal = {.augmentation = "zRS"};
  EXPECT_EQ(RuleOf(SignalFrame(160, 168), signal), "signal");
  EXPECT_EQ(RuleOf(SignalFrame(160, 176), signal), "exotic 0");
  EXPECT_EQ(RuleOf(SignalFrame(152, 168), signal), "exotic 0");
  EXPECT_EQ(RuleOf({}, signal), "exotic 0");
  EXPECT_EQ(RuleOf({}, {.augmentation = "zRS", .instructions = {}}), "signal");
  EXPECT_EQ(RuleOf({DW_CFA_undefined, 16}, signal), "end");
  EXPECT_EQ(RuleOf(SignalFrame(160, 168)), "exotic 0");
}

TEST(RuleClassifier, MarksExoticSignalFrames) {
  MadeObject object = OneFunction({}, 0x100, {.augmentation = "zRS"});
  EXPECT_TRUE(CompileUnwindTable(object.Open())->exotic.at(0).signal_frame);
  object = OneFunction({DW_CFA_register, 6, 11});
  EXPECT_FALSE(CompileUnwindTable(object.Open())->exotic.at(0).signal_frame);
}

TEST(RuleClassifier, MissesTheCfa) {
  const UnwindTable table =
      *CompileUnwindTable(OneFunction({}, 0x100, {.instructions = {}}).Open());
  EXPECT_EQ(table.bad_functions, 1U);
  EXPECT_TRUE(table.empty());
}

TEST(RuleClassifier, KnowsArm64) {
  const CieSpec cie = {
      .code_alignment = 4, .return_address = 30, .instructions = {DW_CFA_def_cfa, 31, 0}};
  DwarfBytes large_frame({DW_CFA_def_cfa, 29});
  large_frame.Uleb(65536).U8(DW_CFA_offset | 29).Uleb(8192).U8(DW_CFA_offset | 30).Uleb(8191);
  const Case cases[] = {
      {"leaf", {}, "cfa=r31+0 fp=same ra=same"},
      {"frame record",
       {DW_CFA_def_cfa_offset, 32, DW_CFA_offset | 29, 4, DW_CFA_offset | 30, 3},
       "cfa=r31+32 fp=[cfa-32] ra=[cfa-24]"},
      {"signed return address",
       {DW_CFA_AARCH64_negate_ra_state, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 30, 1},
       "cfa=r31+16 fp=same ra=[cfa-8]"},
      {"frame record far from the CFA", large_frame, "cfa=r29+65536 fp=[fp+0] ra=[fp+8]"},
      {"no caller", {DW_CFA_undefined, 30}, "end"},
      {"return address elsewhere", {DW_CFA_register, 30, 9}, "cfa=r31+0 fp=same ra=r9"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(RuleOf(c.instructions, cie, EM_AARCH64), c.rule) << c.name;
  }
}

TEST(RuleClassifier, KnowsTheSignalFrameOfArm64) {
  CieSpec cie = {
      .augmentation = "zRS", .return_address = 30, .instructions = {DW_CFA_def_cfa, 31, 0}};
  const DwarfBytes vdso = {
      DW_CFA_def_cfa, 29, 0, DW_CFA_offset | 29, 0, DW_CFA_offset_extended_sf, 30, 0x7f};
  EXPECT_EQ(RuleOf(vdso, cie, EM_AARCH64), "signal");
  EXPECT_EQ(RuleOf({}, cie, EM_AARCH64), "exotic 0");
}

}  // namespace
}  // namespace pyrometer
