// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "pyrometer/abi/unwind.h"
#include "pyrometer/unwind_table.h"
#include "unwind/call_frame_info.h"
#include "unwind/expression_shapes.h"
#include "unwind/registers.h"

namespace pyrometer {

// Turns call frame information into pyro_unwind_rules.
class RuleClassifier {
 public:
  explicit RuleClassifier(const Machine& machine) : machine_(machine) {}

  // Nothing if `rules`, of a function of `cie`, have no CFA where there must be one. What a rule
  // cannot express is PYRO_RULE_EXOTIC, with cfa_offset 0: see MakeExotic. `fp_was_saved`: the
  // function saves the frame pointer in this row or has done so in one before, as all do that have
  // __builtin_eh_return().
  std::optional<pyro_unwind_rule> Classify(const FrameRules& rules, const Cie& cie,
                                           bool fp_was_saved) const;

  bool SavesFramePointer(const FrameRules& rules) const {
    return rules.registers[machine_.frame_pointer].kind == CfiRule::Kind::kAtCfa;
  }

 private:
  pyro_unwind_rule ClassifySignalFrame(const FrameRules& rules, const Cie& cie) const;
  // Each fills in its part of `rule`; false if that cannot be expressed.
  bool SetAll(const FrameRules& rules, const Cie& cie, pyro_unwind_rule& rule) const;
  bool SetCfa(const CfiRule& cfa, const Cie& cie, pyro_unwind_rule& rule) const;
  bool SetCfaByExpression(Expression expression, pyro_unwind_rule& rule) const;
  bool SetCfaBase(const RegisterPlus& base, pyro_unwind_rule& rule) const;
  bool SetFramePointer(const FrameRules& rules, const Cie& cie, pyro_unwind_rule& rule) const;
  bool SetReturnAddress(const FrameRules& rules, const Cie& cie, pyro_unwind_rule& rule) const;
  // True of functions with __builtin_eh_return() once they have saved the registers that carry an
  // exception.
  bool SavesException(const FrameRules& rules) const;
  // The offset from the frame pointer, if that is where `saved` says a register is.
  std::optional<int16_t> FramePointerOffset(const CfiRule& saved, const FrameRules& rules,
                                            const Cie& cie) const;
  int16_t RbxOffset(const FrameRules& rules) const;
  bool IsGeneral(uint8_t reg) const { return reg < machine_.general_registers; }

  Machine machine_;
};

// All of `rules`. Nothing if an expression is longer than any that makes sense (128 bytes).
std::optional<ExoticRule> MakeExotic(const FrameRules& rules, const Cie& cie);

}  // namespace pyrometer
