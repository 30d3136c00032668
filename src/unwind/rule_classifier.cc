// SPDX-License-Identifier: Apache-2.0
#include "unwind/rule_classifier.h"

#include <limits>

#include "unwind/expression_shapes.h"

namespace pyrometer {
namespace {

using Kind = CfiRule::Kind;

constexpr size_t kMaxExpression = 128;

// Where the kernel leaves the interrupted RSP and RIP, from RSP on: struct ucontext of
// arch/x86/include/uapi/asm/ucontext.h, with struct sigcontext at 40.
constexpr Dereferenced kSavedRsp = {.base = {.reg = kAmd64.stack_pointer, .offset = 160},
                                    .added = 0};
constexpr RegisterPlus kSavedRip = {.reg = kAmd64.stack_pointer, .offset = 168};

template <typename Narrow>
bool Fits(int64_t value) {
  return value >= std::numeric_limits<Narrow>::min() && value <= std::numeric_limits<Narrow>::max();
}

// A rule that has no CFA. Members that have no meaning are always the same.
pyro_unwind_rule Bare(pyro_rule_kind kind) {
  return {.kind = static_cast<uint8_t>(kind),
          .cfa_register = 0,
          .fp = 0,
          .ra = 0,
          .cfa_offset = 0,
          .cfa_add = 0,
          .fp_offset = 0,
          .ra_offset = 0,
          .rbx_offset = 0};
}

bool IsAtCfa(const CfiRule& rule, int64_t offset) {
  return rule.kind == Kind::kAtCfa && rule.offset == offset;
}

std::optional<RegisterRule> CopyRule(const CfiRule& rule, const Cie& cie) {
  RegisterRule copy{.kind = rule.kind, .reg = rule.reg, .offset = rule.offset, .expression = {}};
  if (!rule.HasExpression()) return copy;
  if (rule.expression_size > kMaxExpression) return std::nullopt;
  const Expression expression = rule.Expression(cie.section);
  copy.expression.assign(expression.begin(), expression.end());
  copy.offset = 0;
  return copy;
}

}  // namespace

std::optional<pyro_unwind_rule> RuleClassifier::Classify(const FrameRules& rules, const Cie& cie,
                                                         bool fp_was_saved) const {
  if (rules.registers[cie.return_address].kind == Kind::kUndefined) return Bare(PYRO_RULE_END);
  if (cie.signal_frame) return ClassifySignalFrame(rules, cie);
  if (rules.cfa.kind == Kind::kUndefined) return std::nullopt;
  pyro_unwind_rule rule = Bare(PYRO_RULE_REGISTER);
  if (!SetAll(rules, cie, rule)) return Bare(PYRO_RULE_EXOTIC);
  if (rule.kind == PYRO_RULE_REGISTER && fp_was_saved && SavesException(rules)) {
    rule.kind = PYRO_RULE_LEAVING;
  }
  if (rule.kind == PYRO_RULE_REGISTER && cie.is_switched) rule.kind = PYRO_RULE_SWITCHED;
  return rule;
}

// Functions of other calling conventions (clang's preserve_most) save those of an exception as
// they save all that calls may change.
bool RuleClassifier::SavesException(const FrameRules& rules) const {
  if (rules.registers[0].kind != Kind::kAtCfa) return false;  // nearly all
  uint32_t saved = 0;
  for (uint8_t reg = 0; reg < machine_.general_registers; ++reg) {
    if (rules.registers[reg].kind == Kind::kAtCfa) saved |= 1U << reg;
  }
  return (saved & (machine_.exception | machine_.volatiles)) == machine_.exception;
}

// Augmentation S says that no call interrupted the caller, which is also true of other things than
// what the kernel has put on the stack: Wine's system calls, for example.
pyro_unwind_rule RuleClassifier::ClassifySignalFrame(const FrameRules& rules,
                                                     const Cie& cie) const {
  const CfiRule& cfa = rules.cfa;
  const CfiRule& ra = rules.registers[cie.return_address];
  bool by_kernel = cfa.kind == Kind::kUndefined;
  if (machine_.HasLinkRegister()) {
    // The vDSO describes the frame record beside the registers, at the frame pointer.
    by_kernel |= cfa.kind == Kind::kInRegister && cfa.reg == machine_.frame_pointer &&
                 cfa.offset == 0 && IsAtCfa(rules.registers[machine_.frame_pointer], 0) &&
                 IsAtCfa(ra, 8);
  } else if (cfa.kind == Kind::kValueExpression && ra.kind == Kind::kAtExpression) {
    by_kernel |= MatchDereferenced(cfa.Expression(cie.section)) == kSavedRsp &&
                 MatchRegisterPlus(ra.Expression(cie.section)) == kSavedRip;
  }
  return Bare(by_kernel ? PYRO_RULE_SIGNAL : PYRO_RULE_EXOTIC);
}

bool RuleClassifier::SetAll(const FrameRules& rules, const Cie& cie, pyro_unwind_rule& rule) const {
  const CfiRule& sp = rules.registers[machine_.stack_pointer];
  const bool sp_is_cfa = sp.kind == Kind::kSame || (sp.kind == Kind::kCfaPlus && sp.offset == 0);
  if (!sp_is_cfa || cie.return_address != machine_.return_address) return false;
  rule.rbx_offset = RbxOffset(rules);
  return SetCfa(rules.cfa, cie, rule) && SetFramePointer(rules, cie, rule) &&
         SetReturnAddress(rules, cie, rule);
}

bool RuleClassifier::SetCfa(const CfiRule& cfa, const Cie& cie, pyro_unwind_rule& rule) const {
  if (cfa.kind == Kind::kValueExpression) {
    return SetCfaByExpression(cfa.Expression(cie.section), rule);
  }
  return SetCfaBase({.reg = cfa.reg, .offset = cfa.offset}, rule);
}

bool RuleClassifier::SetCfaByExpression(Expression expression, pyro_unwind_rule& rule) const {
  if (const auto plain = MatchRegisterPlus(expression)) return SetCfaBase(*plain, rule);
  if (const auto dereferenced = MatchDereferenced(expression)) {
    rule.kind = PYRO_RULE_DEREFERENCE;
    rule.cfa_add = static_cast<int16_t>(dereferenced->added);
    return Fits<int16_t>(dereferenced->added) && SetCfaBase(dereferenced->base, rule);
  }
  const auto stub = MatchPltStub(expression);
  if (!stub || machine_.HasLinkRegister()) return false;
  rule.kind = PYRO_RULE_PLT;
  rule.cfa_add = stub->pushed_from;
  return SetCfaBase(stub->base, rule);
}

bool RuleClassifier::SetCfaBase(const RegisterPlus& base, pyro_unwind_rule& rule) const {
  rule.cfa_register = base.reg;
  rule.cfa_offset = static_cast<int32_t>(base.offset);
  return IsGeneral(base.reg) && Fits<int32_t>(base.offset);
}

bool RuleClassifier::SetFramePointer(const FrameRules& rules, const Cie& cie,
                                     pyro_unwind_rule& rule) const {
  const CfiRule& saved = rules.registers[machine_.frame_pointer];
  if (saved.kind == Kind::kSame || saved.kind == Kind::kUndefined) {
    rule.fp = saved.kind == Kind::kSame ? PYRO_SAVED_SAME : PYRO_SAVED_LOST;
    return true;
  }
  if (saved.kind == Kind::kAtCfa && Fits<int16_t>(saved.offset)) {
    rule.fp = PYRO_SAVED_AT_CFA;
    rule.fp_offset = static_cast<int16_t>(saved.offset);
    return true;
  }
  const std::optional<int16_t> offset = FramePointerOffset(saved, rules, cie);
  rule.fp = PYRO_SAVED_AT_FP;
  rule.fp_offset = offset.value_or(0);
  return offset.has_value();
}

bool RuleClassifier::SetReturnAddress(const FrameRules& rules, const Cie& cie,
                                      pyro_unwind_rule& rule) const {
  const CfiRule& saved = rules.registers[machine_.return_address];
  if (saved.kind == Kind::kAtCfa && Fits<int16_t>(saved.offset)) {
    rule.ra = PYRO_SAVED_AT_CFA;
    rule.ra_offset = static_cast<int16_t>(saved.offset);
    return true;
  }
  if (saved.kind == Kind::kSame) {
    rule.ra = PYRO_SAVED_SAME;
    return machine_.HasLinkRegister();
  }
  if (saved.kind == Kind::kInRegister) {
    rule.ra = PYRO_SAVED_IN_REGISTER;
    rule.ra_offset = saved.reg;
    return IsGeneral(saved.reg);
  }
  const std::optional<int16_t> offset = FramePointerOffset(saved, rules, cie);
  rule.ra = PYRO_SAVED_AT_FP;
  rule.ra_offset = offset.value_or(0);
  return offset.has_value();
}

std::optional<int16_t> RuleClassifier::FramePointerOffset(const CfiRule& saved,
                                                          const FrameRules& rules,
                                                          const Cie& cie) const {
  std::optional<int64_t> offset;
  if (saved.kind == Kind::kAtExpression) {
    const auto match = MatchRegisterPlus(saved.Expression(cie.section));
    if (match && match->reg == machine_.frame_pointer) offset = match->offset;
  } else if (saved.kind == Kind::kAtCfa && rules.cfa.kind == Kind::kInRegister &&
             rules.cfa.reg == machine_.frame_pointer) {
    // Large frames of arm64, which has the frame record at their other end.
    offset = static_cast<int64_t>(static_cast<uint64_t>(rules.cfa.offset) +
                                  static_cast<uint64_t>(saved.offset));
  }
  if (!offset || !Fits<int16_t>(*offset)) return std::nullopt;
  return static_cast<int16_t>(*offset);
}

int16_t RuleClassifier::RbxOffset(const FrameRules& rules) const {
  if (machine_.HasLinkRegister()) return PYRO_RBX_LOST;
  const CfiRule& saved = rules.registers[kRbx];
  if (saved.kind == Kind::kSame) return PYRO_RBX_SAME;
  const bool sayable =
      saved.kind == Kind::kAtCfa && Fits<int16_t>(saved.offset) && saved.offset != PYRO_RBX_SAME;
  return sayable ? static_cast<int16_t>(saved.offset) : int16_t{PYRO_RBX_LOST};
}

std::optional<ExoticRule> MakeExotic(const FrameRules& rules, const Cie& cie) {
  ExoticRule exotic;
  std::optional<RegisterRule> cfa = CopyRule(rules.cfa, cie);
  if (!cfa) return std::nullopt;
  exotic.cfa = *std::move(cfa);
  exotic.return_address = cie.return_address;
  exotic.signal_frame = cie.signal_frame;
  for (uint8_t reg = 0; reg < kCfiRegisters; ++reg) {
    if (rules.registers[reg].kind == Kind::kSame) continue;
    std::optional<RegisterRule> rule = CopyRule(rules.registers[reg], cie);
    if (!rule) return std::nullopt;
    exotic.registers.push_back({.reg = reg, .rule = *std::move(rule)});
  }
  return exotic;
}

}  // namespace pyrometer
