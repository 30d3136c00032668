// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "unwind/known_registers.h"

namespace pyrometer {

// Fills `out` with memory of the unwound thread; false if it cannot be read.
using MemoryReader = std::function<bool(Address, std::span<std::byte> out)>;

// The inputs of a DWARF expression.
struct ExpressionInputs {
  const KnownRegisters& registers;
  const MemoryReader& memory;
};

// Evaluates `expression` (DWARF 5, section 2.5.1, without what section 6.4.2 forbids in call frame
// information). Returns the value on top of the stack, which starts with `initial` if given. At
// most 1024 operations and 64 values. Errors: kNotFound for a register that is not known and for
// memory that cannot be read; kUnsupported for any other operation; kMalformed.
Result<uint64_t> EvaluateExpression(std::span<const std::byte> expression,
                                    const ExpressionInputs& inputs,
                                    std::optional<uint64_t> initial);

}  // namespace pyrometer
