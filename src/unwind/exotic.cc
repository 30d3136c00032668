// SPDX-License-Identifier: Apache-2.0
#include "unwind/exotic.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace pyrometer {
namespace {

using Kind = RegisterRule::Kind;

uint64_t Plus(uint64_t value, int64_t offset) {
  return value + static_cast<uint64_t>(offset);
}

Result<uint64_t> InRegister(const RegisterRule& rule, const KnownRegisters& registers) {
  const std::optional<uint64_t> value = registers.Get(rule.reg);
  if (!value) return Fail(ErrorCode::kNotFound, "register {} is not known", rule.reg);
  return Plus(*value, rule.offset);
}

Result<uint64_t> Load(uint64_t address, const MemoryReader& memory) {
  uint64_t value = 0;
  if (!memory(Address(address), std::as_writable_bytes(std::span(&value, 1)))) {
    return Fail(ErrorCode::kNotFound, "no memory at {:#x}", address);
  }
  return value;
}

Result<uint64_t> EvaluateCfa(const RegisterRule& rule, const ExpressionInputs& inputs) {
  if (rule.kind == Kind::kInRegister) return InRegister(rule, inputs.registers);
  if (rule.kind == Kind::kValueExpression) {
    return EvaluateExpression(rule.expression, inputs, std::nullopt);
  }
  return Fail(ErrorCode::kUnsupported, "a frame without a CFA");
}

// The caller's value of register `reg`.
Result<uint64_t> EvaluateRegister(uint8_t reg, const RegisterRule& rule, uint64_t cfa,
                                  const ExpressionInputs& inputs) {
  switch (rule.kind) {
    case Kind::kSame:
      return InRegister({.kind = Kind::kInRegister, .reg = reg, .offset = 0, .expression = {}},
                        inputs.registers);
    case Kind::kAtCfa:
      return Load(Plus(cfa, rule.offset), inputs.memory);
    case Kind::kCfaPlus:
      return Plus(cfa, rule.offset);
    case Kind::kInRegister:
      return InRegister(rule, inputs.registers);
    case Kind::kAtExpression: {
      ASSIGN_OR_RETURN(const uint64_t address, EvaluateExpression(rule.expression, inputs, cfa));
      return Load(address, inputs.memory);
    }
    case Kind::kValueExpression:
      return EvaluateExpression(rule.expression, inputs, cfa);
    case Kind::kUndefined:
      break;
  }
  return Fail(ErrorCode::kNotFound, "register {} is not saved", reg);
}

// Of the return address; the implicit rule of a register is that it stays.
RegisterRule RuleOf(const ExoticRule& rule, uint8_t reg) {
  const auto found = std::ranges::find(rule.registers, reg, &ExoticRule::OfRegister::reg);
  return found == rule.registers.end() ? RegisterRule() : found->rule;
}

}  // namespace

Result<CallerFrame> UnwindExotic(const ExoticRule& rule, const Machine& machine,
                                 const KnownRegisters& registers, Address pc,
                                 const MemoryReader& memory) {
  KnownRegisters known = registers;
  // Expressions may read the column of the return address as the program counter.
  if (!machine.HasLinkRegister()) known.Set(machine.return_address, pc.value());
  const ExpressionInputs inputs = {.registers = known, .memory = memory};
  ASSIGN_OR_RETURN(const uint64_t cfa, EvaluateCfa(rule.cfa, inputs));

  const RegisterRule of_return_address = RuleOf(rule, rule.return_address);
  if (of_return_address.kind == Kind::kSame && !machine.HasLinkRegister()) {
    return Fail(ErrorCode::kUnsupported, "a frame without a return address");
  }
  ASSIGN_OR_RETURN(const uint64_t return_address,
                   EvaluateRegister(rule.return_address, of_return_address, cfa, inputs));

  CallerFrame caller{.pc = Address(return_address), .cfa = Address(cfa), .registers = {}};
  for (uint8_t reg = 0; reg < kCfiRegisters; ++reg) {
    const std::optional<uint64_t> value = known.Get(reg);
    if (value && machine.Preserves(reg)) caller.registers.Set(reg, *value);
  }
  caller.registers.Set(machine.stack_pointer, cfa);
  for (const ExoticRule::OfRegister& of : rule.registers) {
    if (of.reg >= kCfiRegisters) continue;
    const Result<uint64_t> value = EvaluateRegister(of.reg, of.rule, cfa, inputs);
    if (value) {
      caller.registers.Set(of.reg, *value);
    } else {
      caller.registers.Forget(of.reg);
    }
  }
  // The call has overwritten it.
  if (!rule.signal_frame && rule.return_address < kCfiRegisters) {
    caller.registers.Forget(rule.return_address);
  }
  return caller;
}

}  // namespace pyrometer
