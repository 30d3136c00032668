// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression_shapes.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {
namespace {

TEST(ExpressionShapes, MatchWhole) {
  EXPECT_EQ(MatchRegisterPlus(DwarfBytes({DW_OP_breg6, 0x70}).bytes()),
            (RegisterPlus{.reg = 6, .offset = -16}));
  EXPECT_EQ(MatchDereferenced(DwarfBytes({DW_OP_breg7, 8, DW_OP_deref}).bytes()),
            (Dereferenced{.base = {.reg = 7, .offset = 8}, .added = 0}));
  EXPECT_EQ(MatchDereferenced(
                DwarfBytes({DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 0x80, 1}).bytes()),
            (Dereferenced{.base = {.reg = 7, .offset = 8}, .added = 128}));
  EXPECT_EQ(
      MatchDereferenced(DwarfBytes({DW_OP_breg7, 8, DW_OP_deref, DW_OP_lit16, DW_OP_plus}).bytes()),
      (Dereferenced{.base = {.reg = 7, .offset = 8}, .added = 16}));
}

TEST(ExpressionShapes, MatchNothingElse) {
  const DwarfBytes others[] = {
      {},
      {DW_OP_breg6},
      {DW_OP_lit8},
      {DW_OP_breg6, 0x70, DW_OP_nop},
      {DW_OP_bregx, 6, 0x70},
      {DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst},
      {DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 8, DW_OP_deref},
      {DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 0x80, 0x80, 0x80, 0x80, 0x10},
      {DW_OP_breg7, 8, DW_OP_deref, DW_OP_lit8},
      {DW_OP_breg7, 8, DW_OP_deref, DW_OP_lit8, DW_OP_minus},
      {DW_OP_breg7, 8, DW_OP_deref, DW_OP_lit8, DW_OP_plus, DW_OP_deref},
      {DW_OP_breg7, 8, DW_OP_deref, DW_OP_deref},
      {DW_OP_breg7, 8, DW_OP_breg16, 1, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3,
       DW_OP_shl, DW_OP_plus},
      {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3,
       DW_OP_shl},
      {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3,
       DW_OP_shl, DW_OP_plus, DW_OP_nop},
  };
  for (const DwarfBytes& other : others) {
    EXPECT_FALSE(MatchRegisterPlus(other.bytes()).has_value()) << other.size();
    EXPECT_FALSE(MatchDereferenced(other.bytes()).has_value()) << other.size();
    EXPECT_FALSE(MatchPltStub(other.bytes()).has_value()) << other.size();
  }
}

}  // namespace
}  // namespace pyrometer
