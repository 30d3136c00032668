// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "unwind/expression_machine.h"
#include "unwind/known_registers.h"
#include "unwind/registers.h"

namespace pyrometer {

// The caller of a frame.
struct CallerFrame {
  Address pc;   // where it goes on
  Address cfa;  // of the frame that it called, for who compares unwinders
  // Registers that the rule does not name are known if they were known before and the calling
  // convention preserves them; the stack pointer is then the CFA.
  KnownRegisters registers;
};

// Unwinds one frame of code of `machine`, which is at `pc`, by a rule that only user space can
// evaluate. Errors: those of EvaluateExpression, for the CFA and the return address; other
// registers that cannot be determined become unknown.
Result<CallerFrame> UnwindExotic(const ExoticRule& rule, const Machine& machine,
                                 const KnownRegisters& registers, Address pc,
                                 const MemoryReader& memory);

}  // namespace pyrometer
