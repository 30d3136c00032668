// SPDX-License-Identifier: Apache-2.0
#include "unwind/exotic.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/unit/unwind/register_rules.h"

namespace pyrometer {
namespace {

using Kind = RegisterRule::Kind;

constexpr uint8_t kRsp = kAmd64.stack_pointer;
constexpr uint8_t kRbp = kAmd64.frame_pointer;
constexpr uint8_t kRip = kAmd64.return_address;

// Words by address; there is nothing else.
MemoryReader WordsAt(std::map<uint64_t, uint64_t> words) {
  return [words = std::move(words)](Address address, std::span<std::byte> out) {
    const auto found = words.find(address.value());
    if (found == words.end()) return false;
    std::memcpy(out.data(), &found->second, out.size());
    return true;
  };
}

KnownRegisters Known(const std::map<uint8_t, uint64_t>& values) {
  KnownRegisters registers;
  for (const auto& [reg, value] : values) registers.Set(reg, value);
  return registers;
}

ExoticRule UsualRule() {
  return {.cfa = InRegister(kRsp, 8),
          .registers = {{.reg = kRip, .rule = AtCfa(-8)}},
          .return_address = kRip};
}

TEST(UnwindExotic, FindsTheCaller) {
  const Result<CallerFrame> caller =
      UnwindExotic(UsualRule(), kAmd64, Known({{kRsp, 0x1000}, {kRbp, 5}, {12, 6}, {0, 7}}),
                   Address(0x400000), WordsAt({{0x1000, 0x401234}}));
  ASSERT_TRUE(caller.has_value()) << caller.error().message();
  EXPECT_EQ(caller->pc, Address(0x401234));
  EXPECT_EQ(caller->cfa, Address(0x1008));
  // rax is not preserved by the call, rbp and r12 are.
  EXPECT_EQ(caller->registers, Known({{kRsp, 0x1008}, {kRbp, 5}, {12, 6}}));
}

TEST(UnwindExotic, AppliesEveryKindOfRule) {
  ExoticRule rule = UsualRule();
  rule.cfa = ValueExpression({DW_OP_breg10, 8, DW_OP_deref});
  rule.registers = {{.reg = 3, .rule = Undefined()},
                    {.reg = kRbp, .rule = InRegister(11)},
                    {.reg = 12, .rule = CfaPlus(-24)},
                    {.reg = 13, .rule = AtExpression({DW_OP_lit16, DW_OP_minus})},
                    {.reg = 14, .rule = ValueExpression({DW_OP_plus_uconst, 1})},
                    {.reg = 15, .rule = AtCfa(0x500)},  // not readable
                    {.reg = kRip, .rule = AtCfa(-8)}};
  const Result<CallerFrame> caller = UnwindExotic(
      rule, kAmd64, Known({{10, 0x1000}, {11, 0x77}, {3, 1}, {15, 2}}), Address(0x400000),
      WordsAt({{0x1008, 0x2000}, {0x1ff8, 0x401234}, {0x1ff0, 0x99}}));
  ASSERT_TRUE(caller.has_value()) << caller.error().message();
  EXPECT_EQ(caller->registers,
            Known({{kRbp, 0x77}, {kRsp, 0x2000}, {12, 0x1fe8}, {13, 0x99}, {14, 0x2001}}));
}

TEST(UnwindExotic, KnowsTheProgramCounter) {
  ExoticRule rule = UsualRule();
  // A PLT entry that pushes something else.
  rule.cfa = ValueExpression({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit6,
                              DW_OP_ge, DW_OP_lit4, DW_OP_shl, DW_OP_plus});
  for (const auto& [pc, cfa] : {std::pair{0x400005, 0x1008}, std::pair{0x400006, 0x1018}}) {
    const Result<CallerFrame> caller = UnwindExotic(
        rule, kAmd64, Known({{kRsp, 0x1000}}), Address(pc), WordsAt({{0x1000, 1}, {0x1010, 2}}));
    EXPECT_EQ(caller->cfa, Address(cfa));
  }
}

TEST(UnwindExotic, TakesTheReturnAddressFromTheLinkRegister) {
  const ExoticRule rule = {.cfa = InRegister(31, 16),
                           .registers = {{.reg = 20, .rule = Undefined()}},
                           .return_address = 30};
  const Result<CallerFrame> caller =
      UnwindExotic(rule, kArm64, Known({{31, 0x1000}, {30, 0x401234}, {19, 4}, {20, 5}}),
                   Address(0x400000), WordsAt({}));
  EXPECT_EQ(caller->pc, Address(0x401234));
  EXPECT_EQ(caller->registers, Known({{31, 0x1010}, {19, 4}}));
}

TEST(UnwindExotic, RestoresTheLinkRegisterBehindASignal) {
  ExoticRule rule = {.cfa = InRegister(31),
                     .registers = {{.reg = 30, .rule = AtCfa(8)}},
                     .return_address = 30,
                     .signal_frame = true};
  const auto unwind = [&] {
    return UnwindExotic(rule, kArm64, Known({{31, 0x1000}}), Address(0x400000),
                        WordsAt({{0x1008, 0x401234}}));
  };
  EXPECT_EQ(unwind()->registers.Get(30), 0x401234U);
  rule.signal_frame = false;
  EXPECT_FALSE(unwind()->registers.Get(30).has_value());
}

TEST(UnwindExotic, SaysWhyItCannot) {
  const KnownRegisters registers = Known({{kRsp, 0x1000}});
  const auto error_of = [&](const ExoticRule& rule) {
    const Result<CallerFrame> caller =
        UnwindExotic(rule, kAmd64, registers, Address(1), WordsAt({}));
    return caller ? ErrorCode::kInternal : caller.error().code();
  };
  EXPECT_EQ(error_of(UsualRule()), ErrorCode::kNotFound);  // memory
  ExoticRule rule = UsualRule();
  rule.cfa.reg = 10;
  EXPECT_EQ(error_of(rule), ErrorCode::kNotFound);
  rule = UsualRule();
  rule.cfa.kind = Kind::kUndefined;
  EXPECT_EQ(error_of(rule), ErrorCode::kUnsupported);
  rule = UsualRule();
  rule.registers.clear();
  EXPECT_EQ(error_of(rule), ErrorCode::kUnsupported);
  rule = UsualRule();
  rule.registers[0].rule.kind = Kind::kUndefined;
  EXPECT_EQ(error_of(rule), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace pyrometer
