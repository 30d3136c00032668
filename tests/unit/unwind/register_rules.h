// SPDX-License-Identifier: Apache-2.0
// Register rules in one word each.
#pragma once

#include "pyrometer/unwind_table.h"
#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {

inline RegisterRule RuleOfKind(RegisterRule::Kind kind, uint8_t reg, int64_t offset,
                               const DwarfBytes& expression) {
  return {.kind = kind, .reg = reg, .offset = offset, .expression = expression.bytes()};
}
inline RegisterRule Undefined() {
  return RuleOfKind(RegisterRule::Kind::kUndefined, 0, 0, {});
}
inline RegisterRule AtCfa(int64_t offset) {
  return RuleOfKind(RegisterRule::Kind::kAtCfa, 0, offset, {});
}
inline RegisterRule CfaPlus(int64_t offset) {
  return RuleOfKind(RegisterRule::Kind::kCfaPlus, 0, offset, {});
}
inline RegisterRule InRegister(uint8_t reg, int64_t offset = 0) {
  return RuleOfKind(RegisterRule::Kind::kInRegister, reg, offset, {});
}
inline RegisterRule AtExpression(const DwarfBytes& expression) {
  return RuleOfKind(RegisterRule::Kind::kAtExpression, 0, 0, expression);
}
inline RegisterRule ValueExpression(const DwarfBytes& expression) {
  return RuleOfKind(RegisterRule::Kind::kValueExpression, 0, 0, expression);
}

}  // namespace pyrometer
