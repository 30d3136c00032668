// SPDX-License-Identifier: Apache-2.0
// Rules of an unwind table in one word each.
#pragma once

#include <cstdint>

#include "pyrometer/abi/unwind.h"

namespace pyrometer {

// A frame whose CFA `kind` finds by a register and an offset. The return address is below it, the
// caller's other registers are unchanged.
inline pyro_unwind_rule FrameRule(uint8_t kind, uint8_t cfa_register, int32_t cfa_offset) {
  return {.kind = kind,
          .cfa_register = cfa_register,
          .fp = PYRO_SAVED_SAME,
          .ra = PYRO_SAVED_AT_CFA,
          .cfa_offset = cfa_offset,
          .cfa_add = 0,
          .fp_offset = 0,
          .ra_offset = -8,
          .rbx_offset = PYRO_RBX_SAME};
}

// CFA = RSP + offset.
inline pyro_unwind_rule RuleWithOffset(int32_t offset) {
  return FrameRule(PYRO_RULE_REGISTER, 7, offset);
}

// Of the kinds without a CFA.
inline pyro_unwind_rule RuleOfKind(uint8_t kind) {
  pyro_unwind_rule rule{};
  rule.kind = kind;
  return rule;
}

}  // namespace pyrometer
