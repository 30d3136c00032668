// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pyrometer/unwind_table.h"
#include "unwind/registers.h"

namespace pyrometer {

// A RegisterRule that refers to its expression instead of copying it: there are many rows, and
// nearly all are dropped.
struct CfiRule {
  using Kind = RegisterRule::Kind;

  Kind kind = Kind::kSame;
  uint8_t reg = 0;
  uint32_t expression_size = 0;
  int64_t offset = 0;  // or where in its section the expression begins

  bool HasExpression() const {
    return kind == Kind::kAtExpression || kind == Kind::kValueExpression;
  }
  // Of a rule that has one.
  std::span<const std::byte> Expression(std::span<const std::byte> section) const {
    return section.subspan(static_cast<size_t>(offset), expression_size);
  }
};

// The rules for one range of code: a row of the table in DWARF 5, section 6.4.1.
struct FrameRules {
  CfiRule cfa = {.kind = CfiRule::Kind::kUndefined};  // or kInRegister, kValueExpression
  int64_t cfa_offset = 0;  // the latest, which an expression suspends and a register brings back
  std::array<CfiRule, kCfiRegisters> registers;
};

}  // namespace pyrometer
