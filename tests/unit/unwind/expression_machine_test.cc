// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression_machine.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {
namespace {

constexpr uint64_t kTop = uint64_t{1} << 63;

// Every byte of memory below 0x1000 is the low byte of its address; there is no other.
bool ReadPattern(Address address, std::span<std::byte> out) {
  if (address.value() + out.size() > 0x1000) return false;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(address.value() + i);
  return true;
}

Result<uint64_t> Evaluate(const DwarfBytes& expression,
                          std::optional<uint64_t> initial = std::nullopt) {
  KnownRegisters registers;
  registers.Set(3, 0x100);
  const MemoryReader memory = ReadPattern;
  return EvaluateExpression(expression.bytes(), {.registers = registers, .memory = memory},
                            initial);
}

TEST(EvaluateExpression, PushesConstants) {
  const struct {
    DwarfBytes expression;
    uint64_t value;
  } cases[] = {
      {{DW_OP_lit31}, 31},
      {{DW_OP_const1u, 0xff}, 255},
      {{DW_OP_const1s, 0xff}, ~uint64_t{0}},
      {{DW_OP_const2u, 0xfe, 0xff}, 0xfffe},
      {{DW_OP_const2s, 0xfe, 0xff}, ~uint64_t{1}},
      {DwarfBytes({DW_OP_const4u}).U32(0xfffffffe), 0xfffffffe},
      {DwarfBytes({DW_OP_const4s}).U32(0xfffffffe), ~uint64_t{1}},
      {DwarfBytes({DW_OP_const8u}).U64(kTop), kTop},
      {DwarfBytes({DW_OP_const8s}).U64(kTop), kTop},
      {DwarfBytes({DW_OP_constu}).Uleb(kTop), kTop},
      {DwarfBytes({DW_OP_consts}).Sleb(-300), static_cast<uint64_t>(-300)},
      {{DW_OP_breg3, 8}, 0x108},
      {{DW_OP_breg3, 0x78}, 0xf8},
      {{DW_OP_bregx, 3, 8}, 0x108},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Evaluate(c.expression).value_or(0xbad), c.value)
        << std::to_integer<int>(c.expression.bytes()[0]);
  }
}

TEST(EvaluateExpression, Computes) {
  const auto of = [](int64_t a, int64_t b, int operation) {
    return DwarfBytes({DW_OP_consts})
        .Sleb(a)
        .U8(DW_OP_consts)
        .Sleb(b)
        .U8(static_cast<uint64_t>(operation));
  };
  const struct {
    int operation;
    int64_t a, b;
    int64_t value;
  } cases[] = {
      {DW_OP_and, 12, 10, 8},   {DW_OP_or, 12, 10, 14},    {DW_OP_xor, 12, 10, 6},
      {DW_OP_plus, 12, -10, 2}, {DW_OP_minus, 10, 12, -2}, {DW_OP_mul, -3, 5, -15},
      {DW_OP_div, -15, 4, -3},  {DW_OP_mod, 15, 4, 3},     {DW_OP_shl, 3, 4, 48},
      {DW_OP_shl, 3, 64, 0},    {DW_OP_shr, -1, 60, 15},   {DW_OP_shr, -1, 64, 0},
      {DW_OP_shra, -16, 2, -4}, {DW_OP_shra, -16, 99, -1}, {DW_OP_eq, 3, 3, 1},
      {DW_OP_ne, 3, 3, 0},      {DW_OP_lt, -1, 0, 1},      {DW_OP_le, 0, 0, 1},
      {DW_OP_gt, -1, 0, 0},     {DW_OP_ge, 0, -1, 1},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(static_cast<int64_t>(Evaluate(of(c.a, c.b, c.operation)).value_or(0xbad)), c.value)
        << c.a << " " << c.b << " operation " << c.operation;
  }
}

TEST(EvaluateExpression, ChangesTheTop) {
  EXPECT_EQ(*Evaluate({DW_OP_const1s, 0xf0, DW_OP_abs}), 16U);
  EXPECT_EQ(*Evaluate({DW_OP_lit5, DW_OP_neg}), ~uint64_t{4});
  EXPECT_EQ(*Evaluate({DW_OP_lit5, DW_OP_not}), ~uint64_t{5});
  EXPECT_EQ(*Evaluate({DW_OP_lit5, DW_OP_plus_uconst, 0x80, 1}), 133U);
  EXPECT_EQ(*Evaluate({DW_OP_plus_uconst, 1}, 41), 42U);
}

TEST(EvaluateExpression, MovesValues) {
  // What remains is read as digits.
  const auto digits = [](DwarfBytes expression, int count) {
    for (int i = 1; i < count; ++i) {
      expression.Append({DW_OP_swap, DW_OP_const1u, 16, DW_OP_mul, DW_OP_plus});
    }
    return Evaluate(expression).value_or(0xbad);
  };
  EXPECT_EQ(digits({DW_OP_lit1, DW_OP_dup}, 2), 0x11U);
  EXPECT_EQ(digits({DW_OP_lit1, DW_OP_lit2, DW_OP_drop}, 1), 0x1U);
  EXPECT_EQ(digits({DW_OP_lit1, DW_OP_lit2, DW_OP_swap}, 2), 0x21U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_lit2, DW_OP_over}), 1U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_pick, 2}), 1U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot}), 2U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop}), 1U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop, DW_OP_drop}), 3U);
  EXPECT_EQ(*Evaluate({DW_OP_lit9, DW_OP_nop}), 9U);
}

TEST(EvaluateExpression, ReadsMemory) {
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_deref}), 0x0807060504030201U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_deref_size, 2}), 0x0201U);
  EXPECT_EQ(Evaluate({DW_OP_const2u, 0, 0x10, DW_OP_deref}).error().code(), ErrorCode::kNotFound);
}

TEST(EvaluateExpression, Branches) {
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_skip, 1, 0, DW_OP_lit2}), 1U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_lit2}), 2U);
  EXPECT_EQ(*Evaluate({DW_OP_lit1, DW_OP_lit7, DW_OP_bra, 1, 0, DW_OP_lit2}), 1U);
  // Counts down from 3: dup, leave if zero, else subtract 1 and go back.
  EXPECT_EQ(*Evaluate({DW_OP_lit3, DW_OP_lit1, DW_OP_minus, DW_OP_dup, DW_OP_bra, 0xfa, 0xff}), 0U);
}

TEST(EvaluateExpression, FailsClearly) {
  DwarfBytes full;
  for (int i = 0; i < 65; ++i) full.U8(DW_OP_lit0);
  const struct {
    const char* name;
    DwarfBytes expression;
    ErrorCode code;
  } cases[] = {
      {"nothing", {}, ErrorCode::kMalformed},
      {"empty stack", {DW_OP_drop}, ErrorCode::kMalformed},
      {"one value for two", {DW_OP_lit1, DW_OP_plus}, ErrorCode::kMalformed},
      {"pick too deep", {DW_OP_lit1, DW_OP_pick, 1}, ErrorCode::kMalformed},
      {"rot of two", {DW_OP_lit1, DW_OP_lit2, DW_OP_rot}, ErrorCode::kMalformed},
      {"full stack", full, ErrorCode::kMalformed},
      {"endless loop", {DW_OP_skip, 0xfd, 0xff}, ErrorCode::kMalformed},
      {"branch before the beginning", {DW_OP_skip, 0xf0, 0xff}, ErrorCode::kMalformed},
      {"branch beyond the end", {DW_OP_skip, 1, 0}, ErrorCode::kMalformed},
      {"operand cut", {DW_OP_const4u, 1}, ErrorCode::kMalformed},
      {"branch cut", {DW_OP_lit1, DW_OP_skip, 1}, ErrorCode::kMalformed},
      {"division by zero", {DW_OP_lit1, DW_OP_lit0, DW_OP_div}, ErrorCode::kMalformed},
      {"remainder by zero", {DW_OP_lit1, DW_OP_lit0, DW_OP_mod}, ErrorCode::kMalformed},
      {"largest quotient",
       {DW_OP_lit1, DW_OP_const1u, 63, DW_OP_shl, DW_OP_const1s, 0xff, DW_OP_div},
       ErrorCode::kMalformed},
      {"too many bytes", {DW_OP_lit1, DW_OP_deref_size, 9}, ErrorCode::kMalformed},
      {"unknown register", {DW_OP_breg4, 0}, ErrorCode::kNotFound},
      {"no such register", {DW_OP_bregx, 0xff, 0x7f, 0}, ErrorCode::kNotFound},
      {"unknown operation", {0x05}, ErrorCode::kUnsupported},
      {"the CFA, of all things", {DW_OP_call_frame_cfa}, ErrorCode::kUnsupported},
  };
  for (const auto& c : cases) {
    const Result<uint64_t> value = Evaluate(c.expression);
    ASSERT_FALSE(value.has_value()) << c.name;
    EXPECT_EQ(value.error().code(), c.code) << c.name << ": " << value.error().message();
  }
}

}  // namespace
}  // namespace pyrometer
