// SPDX-License-Identifier: Apache-2.0
// What each call frame instruction does to the table.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/unwind/made_object.h"
#include "tests/unit/unwind/printed_rule.h"
#include "tests/unit/unwind/register_rules.h"
#include "unwind/cfa_machine.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

constexpr const char* kEntry = "cfa=r7+8 fp=same ra=[cfa-8] rbx=same";

struct Case {
  const char* name;
  DwarfBytes instructions;
  uint64_t offset;  // in the function
  const char* rule;
};

void ExpectRules(const std::vector<Case>& cases, const CieSpec& cie = {}) {
  for (const Case& c : cases) {
    const Result<UnwindTable> table =
        CompileUnwindTable(OneFunction(c.instructions, 0x100, cie).Open());
    ASSERT_TRUE(table.has_value()) << c.name << ": " << table.error().message();
    EXPECT_EQ(table->bad_functions, 0U) << c.name;
    EXPECT_EQ(RuleTextAt(*table, kText + c.offset), c.rule) << c.name;
  }
}

TEST(CfaInstructions, AdvanceTheLocation) {
  const DwarfBytes push = {DW_CFA_def_cfa_offset, 16};
  const auto after = [&](DwarfBytes advance) { return advance.Append(push); };
  constexpr const char* kPushed = "cfa=r7+16 fp=same ra=[cfa-8] rbx=same";
  ExpectRules({
      {"advance_loc, before", after({DW_CFA_advance_loc | 4}), 3, kEntry},
      {"advance_loc, after", after({DW_CFA_advance_loc | 4}), 4, kPushed},
      {"advance_loc1", after({DW_CFA_advance_loc1, 0x80}), 0x7f, kEntry},
      {"advance_loc1, after", after({DW_CFA_advance_loc1, 0x80}), 0x80, kPushed},
      {"advance_loc2", after({DW_CFA_advance_loc2, 0x90, 0}), 0x90, kPushed},
      {"advance_loc4", after({DW_CFA_advance_loc4, 0xa0, 0, 0, 0}), 0xa0, kPushed},
      {"advance by nothing", after({DW_CFA_advance_loc}), 0, kPushed},
      {"up to the end", after({DW_CFA_advance_loc2, 0, 1}), 0xff, kEntry},
      {"beyond the end", after({DW_CFA_advance_loc2, 0, 2}), 0xff, kEntry},
      {"and out of it", after({DW_CFA_advance_loc2, 0, 2}), 0x200, "none"},
      {"set_loc", after(DwarfBytes({DW_CFA_set_loc}).U64(kText + 9)), 8, kEntry},
      {"set_loc, after", after(DwarfBytes({DW_CFA_set_loc}).U64(kText + 9)), 9, kPushed},
  });
}

TEST(CfaInstructions, SetLocationRelativeToThemselves) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie({.additions = {DW_EH_PE_pcrel | DW_EH_PE_sdata4}});
  const uint64_t begin = kEhFrame + writer.bytes().size() + 8;  // behind length and id
  const uint64_t operand = begin + 4 + 4 + 1 + 1;
  writer.AddRawFde(cie, DwarfBytes()
                            .U32(kText - begin)
                            .U32(0x100)
                            .Uleb(0)
                            .U8(DW_CFA_set_loc)
                            .U32(kText + 9 - operand)
                            .U8(DW_CFA_def_cfa_offset)
                            .U8(16));
  MadeObject object;
  object.eh_frame = writer.bytes();
  const Result<UnwindTable> table = CompileUnwindTable(object.Open());
  EXPECT_EQ(RuleTextAt(*table, kText + 8), kEntry);
  EXPECT_EQ(RuleTextAt(*table, kText + 9), "cfa=r7+16 fp=same ra=[cfa-8] rbx=same");
}

TEST(CfaInstructions, DefineTheCfa) {
  ExpectRules({
      {"none", {}, 0, kEntry},
      {"nop", {DW_CFA_nop, DW_CFA_nop}, 0, kEntry},
      {"def_cfa", {DW_CFA_def_cfa, 6, 16}, 0, "cfa=r6+16 fp=same ra=[cfa-8] rbx=same"},
      {"def_cfa_register", {DW_CFA_def_cfa_register, 6}, 0, "cfa=r6+8 fp=same ra=[cfa-8] rbx=same"},
      {"def_cfa_offset",
       {DW_CFA_def_cfa_offset, 0x80, 1},
       0,
       "cfa=r7+128 fp=same ra=[cfa-8] rbx=same"},
      {"def_cfa_sf", {DW_CFA_def_cfa_sf, 10, 2}, 0, "cfa=r10-16 fp=same ra=[cfa-8] rbx=same"},
      {"def_cfa_offset_sf",
       {DW_CFA_def_cfa_offset_sf, 0x7e},
       0,
       "cfa=r7+16 fp=same ra=[cfa-8] rbx=same"},
      {"def_cfa_expression",
       {DW_CFA_def_cfa_expression, 2, DW_OP_breg6, 0x70},
       0,
       "cfa=r6-16 fp=same ra=[cfa-8] rbx=same"},
  });
}

// libgcrypt depends on it.
TEST(CfaInstructions, BringBackTheOffsetThatAnExpressionSuspended) {
  const DwarfBytes expression = {
      DW_CFA_def_cfa_offset, 56, DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 16, DW_OP_deref};
  const auto and_then = [&](const DwarfBytes& more) { return DwarfBytes(expression).Append(more); };
  ExpectRules({
      {"register", and_then({DW_CFA_def_cfa_register, 6}), 0,
       "cfa=r6+56 fp=same ra=[cfa-8] rbx=same"},
      {"offset", and_then({DW_CFA_def_cfa_offset, 48}), 0,
       "cfa=[r7+16]+0 fp=same ra=[cfa-8] rbx=same"},
      {"both", and_then({DW_CFA_def_cfa_offset, 48, DW_CFA_def_cfa_register, 6}), 0,
       "cfa=r6+48 fp=same ra=[cfa-8] rbx=same"},
  });
}

TEST(CfaInstructions, SaveRegisters) {
  ExpectRules({
      {"offset", {DW_CFA_offset | 6, 2}, 0, "cfa=r7+8 fp=[cfa-16] ra=[cfa-8] rbx=same"},
      {"offset_extended",
       {DW_CFA_offset_extended, 6, 3},
       0,
       "cfa=r7+8 fp=[cfa-24] ra=[cfa-8] rbx=same"},
      {"offset_extended_sf",
       {DW_CFA_offset_extended_sf, 6, 0x7f},
       0,
       "cfa=r7+8 fp=[cfa+8] ra=[cfa-8] rbx=same"},
      {"GNU_negative_offset_extended",
       {DW_CFA_GNU_negative_offset_extended, 6, 2},
       0,
       "cfa=r7+8 fp=[cfa+16] ra=[cfa-8] rbx=same"},
      {"undefined", {DW_CFA_undefined, 6}, 0, "cfa=r7+8 fp=lost ra=[cfa-8] rbx=same"},
      {"same_value", {DW_CFA_offset | 6, 2, DW_CFA_same_value, 6}, 0, kEntry},
      {"restore", {DW_CFA_offset | 6, 2, DW_CFA_restore | 6}, 0, kEntry},
      {"restore of what the CIE says", {DW_CFA_offset | 16, 4, DW_CFA_restore | 16}, 0, kEntry},
      {"restore_extended", {DW_CFA_offset | 6, 2, DW_CFA_restore_extended, 6}, 0, kEntry},
      {"register", {DW_CFA_register, 16, 5}, 0, "cfa=r7+8 fp=same ra=r5 rbx=same"},
      {"expression",
       {DW_CFA_expression, 6, 2, DW_OP_breg6, 0},
       0,
       "cfa=r7+8 fp=[fp+0] ra=[cfa-8] rbx=same"},
      {"GNU_args_size", {DW_CFA_GNU_args_size, 0x90, 1}, 0, kEntry},
      {"negate_ra_state", {DW_CFA_AARCH64_negate_ra_state}, 0, kEntry},
      {"of vector registers", {DW_CFA_offset | 40, 2, DW_CFA_restore | 40}, 0, kEntry},
      {"the return address undefined", {DW_CFA_undefined, 16}, 0, "end"},
  });
}

TEST(CfaInstructions, RememberStates) {
  const DwarfBytes nested = {DW_CFA_remember_state,
                             DW_CFA_def_cfa_offset,
                             16,
                             DW_CFA_offset | 6,
                             2,
                             DW_CFA_remember_state,
                             DW_CFA_def_cfa,
                             6,
                             16,
                             DW_CFA_advance_loc | 1,
                             DW_CFA_restore_state,
                             DW_CFA_advance_loc | 1,
                             DW_CFA_restore_state};
  ExpectRules({
      {"innermost", nested, 0, "cfa=r6+16 fp=[cfa-16] ra=[cfa-8] rbx=same"},
      {"restored once", nested, 1, "cfa=r7+16 fp=[cfa-16] ra=[cfa-8] rbx=same"},
      {"restored twice", nested, 2, kEntry},
  });
}

TEST(CfaInstructions, CountInUnitsOfTheCie) {
  ExpectRules({{"code",
                {DW_CFA_advance_loc | 3, DW_CFA_def_cfa_offset, 16},
                11,
                "cfa=r7+8 fp=same ra=[cfa-4] rbx=same"},
               {"data", {DW_CFA_offset | 6, 2}, 0, "cfa=r7+8 fp=[cfa-8] ra=[cfa-4] rbx=same"}},
              {.code_alignment = 4, .data_alignment = -4});
}

// What only exotic rules can say.
TEST(CfaInstructions, KeepWhatRulesCannotSay) {
  const DwarfBytes instructions = {DW_CFA_val_offset,         12, 2,     // r12 = CFA - 16
                                   DW_CFA_val_offset_sf,      13, 0x7f,  // r13 = CFA + 8
                                   DW_CFA_val_expression,     14, 2,         DW_OP_breg7, 8,
                                   DW_CFA_def_cfa_expression, 1,  DW_OP_lit5};
  const Result<UnwindTable> table = CompileUnwindTable(OneFunction(instructions).Open());
  ASSERT_EQ(RuleTextAt(*table, kText), "exotic 0");
  ASSERT_EQ(table->exotic.size(), 1U);
  const ExoticRule& rule = table->exotic[0];
  EXPECT_EQ(rule.return_address, 16);
  EXPECT_EQ(rule.cfa, ValueExpression({DW_OP_lit5}));
  const std::vector<ExoticRule::OfRegister> expected = {
      {.reg = 12, .rule = CfaPlus(-16)},
      {.reg = 13, .rule = CfaPlus(8)},
      {.reg = 14, .rule = ValueExpression({DW_OP_breg7, 8})},
      {.reg = 16, .rule = AtCfa(-8)}};
  EXPECT_EQ(rule.registers, expected);
}

TEST(CfaInstructions, ThatAreMalformedCostTheFunction) {
  DwarfBytes too_deep;
  for (size_t i = 0; i <= CfaMachine::kMaxRemembered; ++i) too_deep.U8(DW_CFA_remember_state);
  DwarfBytes backwards({DW_CFA_advance_loc | 4, DW_CFA_set_loc});
  backwards.U64(kText + 2);
  DwarfBytes overlong({DW_CFA_def_cfa_offset});
  for (int i = 0; i < 10; ++i) overlong.U8(0xff);
  const Case cases[] = {
      {"unknown opcode", {0x3e}, 0, ""},
      {"restore without remember", {DW_CFA_restore_state}, 0, ""},
      {"remembering without end", too_deep, 0, ""},
      {"set_loc backwards", backwards, 0, ""},
      {"operand missing", {DW_CFA_def_cfa, 7}, 0, ""},
      {"operand cut", {DW_CFA_advance_loc4, 1, 2}, 0, ""},
      {"expression cut", {DW_CFA_def_cfa_expression, 3, DW_OP_breg6}, 0, ""},
      {"LEB128 overflow", overlong.U8(1), 0, ""},
      {"LEB128 without end", {DW_CFA_def_cfa_offset, 0x80, 0x80}, 0, ""},
      {"CFA in a vector register", {DW_CFA_def_cfa, 40, 8}, 0, ""},
      {"behind good ones", {DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16, 0x3e}, 0, ""},
  };
  for (const Case& c : cases) {
    const Result<UnwindTable> table = CompileUnwindTable(OneFunction(c.instructions).Open());
    ASSERT_TRUE(table.has_value()) << c.name;
    EXPECT_EQ(table->bad_functions, 1U) << c.name;
    EXPECT_EQ(table->functions, 0U) << c.name;
    EXPECT_TRUE(table->empty()) << c.name;
  }
}

TEST(CfaInstructions, BehindTheEndAreNotExecuted) {
  const DwarfBytes instructions = {DW_CFA_advance_loc2, 0, 1, 0x3e};
  const Result<UnwindTable> table = CompileUnwindTable(OneFunction(instructions).Open());
  EXPECT_EQ(table->functions, 1U);
  EXPECT_EQ(table->bad_functions, 0U);
}

}  // namespace
}  // namespace pyrometer
