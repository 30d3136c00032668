// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

#include "pyrometer/abi/unwind.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

inline std::string PrintSaved(uint8_t saved, int offset) {
  switch (saved) {
    case PYRO_SAVED_LOST:
      return "lost";
    case PYRO_SAVED_SAME:
      return "same";
    case PYRO_SAVED_AT_CFA:
      return fmt::format("[cfa{:+}]", offset);
    case PYRO_SAVED_AT_FP:
      return fmt::format("[fp{:+}]", offset);
    case PYRO_SAVED_IN_REGISTER:
      return fmt::format("r{}", offset);
    default:
      return "?";
  }
}

// A rule in one line: "cfa=r7+8 fp=same ra=[cfa-8]", and " rbx=..." if it is not lost;
// PYRO_RULE_LEAVING begins with "leaving ", PYRO_RULE_SWITCHED with "switched ".
inline std::string Print(const pyro_unwind_rule& rule) {
  std::string cfa = fmt::format("r{}{:+}", rule.cfa_register, rule.cfa_offset);
  switch (rule.kind) {
    case PYRO_RULE_NONE:
      return "none";
    case PYRO_RULE_END:
      return "end";
    case PYRO_RULE_SIGNAL:
      return "signal";
    case PYRO_RULE_EXOTIC:
      return fmt::format("exotic {}", rule.cfa_offset);
    case PYRO_RULE_DEREFERENCE:
      cfa = fmt::format("[{}]{:+}", cfa, rule.cfa_add);
      break;
    case PYRO_RULE_PLT:
      cfa = fmt::format("{}+plt{}", cfa, rule.cfa_add);
      break;
    default:
      break;
  }
  std::string text;
  if (rule.kind == PYRO_RULE_LEAVING) text = "leaving ";
  if (rule.kind == PYRO_RULE_SWITCHED) text = "switched ";
  text += fmt::format("cfa={} fp={} ra={}", cfa, PrintSaved(rule.fp, rule.fp_offset),
                      PrintSaved(rule.ra, rule.ra_offset));
  if (rule.rbx_offset == PYRO_RBX_SAME) text += " rbx=same";
  if (rule.rbx_offset != PYRO_RBX_SAME && rule.rbx_offset != PYRO_RBX_LOST) {
    text += fmt::format(" rbx=[cfa{:+}]", rule.rbx_offset);
  }
  return text;
}

inline std::string RuleTextAt(const UnwindTable& table, uint64_t address) {
  return Print(*table.RuleAt(ElfAddress(address)));
}

}  // namespace pyrometer
