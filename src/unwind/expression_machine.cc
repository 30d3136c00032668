// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression_machine.h"

#include <dwarf.h>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "binary/dwarf_cursor.h"

namespace pyrometer {
namespace {

constexpr size_t kMaxOperations = 1024;  // expressions may loop
constexpr size_t kMaxValues = 64;
constexpr unsigned kWordBits = 64;

int64_t Signed(uint64_t value) {
  return static_cast<int64_t>(value);
}

uint64_t ShiftLeft(uint64_t value, uint64_t bits) {
  return bits < kWordBits ? value << bits : 0;
}

uint64_t ShiftRight(uint64_t value, uint64_t bits) {
  return bits < kWordBits ? value >> bits : 0;
}

uint64_t ShiftRightSigned(uint64_t value, uint64_t bits) {
  return static_cast<uint64_t>(Signed(value) >> (bits < kWordBits ? bits : kWordBits - 1));
}

// Nothing where the result is undefined.
std::optional<uint64_t> Divide(uint64_t dividend, uint64_t divisor) {
  const bool overflow =
      Signed(dividend) == std::numeric_limits<int64_t>::min() && Signed(divisor) == -1;
  if (divisor == 0 || overflow) return std::nullopt;
  return static_cast<uint64_t>(Signed(dividend) / Signed(divisor));
}

// `a` was below `b` on the stack. Nothing if `operation` takes no two values.
std::optional<uint64_t> Compute(uint8_t operation, uint64_t a, uint64_t b) {
  switch (operation) {
    case DW_OP_and:
      return a & b;
    case DW_OP_or:
      return a | b;
    case DW_OP_xor:
      return a ^ b;
    case DW_OP_plus:
      return a + b;
    case DW_OP_minus:
      return a - b;
    case DW_OP_mul:
      return a * b;
    case DW_OP_div:
      return Divide(a, b);
    case DW_OP_mod:
      return b == 0 ? std::nullopt : std::optional(a % b);
    case DW_OP_shl:
      return ShiftLeft(a, b);
    case DW_OP_shr:
      return ShiftRight(a, b);
    case DW_OP_shra:
      return ShiftRightSigned(a, b);
    case DW_OP_eq:
      return a == b;
    case DW_OP_ne:
      return a != b;
    case DW_OP_lt:
      return Signed(a) < Signed(b);
    case DW_OP_le:
      return Signed(a) <= Signed(b);
    case DW_OP_gt:
      return Signed(a) > Signed(b);
    case DW_OP_ge:
      return Signed(a) >= Signed(b);
    default:
      return std::nullopt;
  }
}

class ExpressionMachine {
 public:
  ExpressionMachine(std::span<const std::byte> expression, const ExpressionInputs& inputs)
      : expression_(expression), inputs_(inputs), cursor_(expression) {}

  Result<uint64_t> Run(std::optional<uint64_t> initial) {
    if (initial) Push(*initial);
    for (size_t done = 0; !cursor_.AtEnd(); ++done) {
      if (done == kMaxOperations) {
        return Fail(ErrorCode::kMalformed, "an expression of more than {} steps", kMaxOperations);
      }
      RETURN_IF_ERROR(Execute(cursor_.Fixed<uint8_t>()));
      if (!cursor_.ok()) return Fail(ErrorCode::kMalformed, "an expression ends in an operand");
      if (broken_) return Fail(ErrorCode::kMalformed, "an expression leaves its stack");
    }
    if (depth_ == 0) return Fail(ErrorCode::kMalformed, "an expression without a value");
    return Pop();
  }

 private:
  Result<void> Execute(uint8_t operation) {
    if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31) {
      Push(operation - DW_OP_lit0);
      return {};
    }
    if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31) {
      return PushRegister(operation - DW_OP_breg0);
    }
    if (operation == DW_OP_bregx) return PushRegister(cursor_.Uleb());
    if (operation == DW_OP_deref) return Dereference(sizeof(uint64_t));
    if (operation == DW_OP_deref_size) return Dereference(cursor_.Fixed<uint8_t>());
    if (operation == DW_OP_skip || operation == DW_OP_bra) return Branch(operation == DW_OP_bra);
    if (PushConstant(operation) || MoveValues(operation) || ChangeTop(operation)) return {};
    return CombineTwo(operation);
  }

  bool PushConstant(uint8_t operation) {
    switch (operation) {
      case DW_OP_const1u:
        return Push(cursor_.Fixed<uint8_t>());
      case DW_OP_const1s:
        return Push(static_cast<uint64_t>(cursor_.Fixed<int8_t>()));
      case DW_OP_const2u:
        return Push(cursor_.Fixed<uint16_t>());
      case DW_OP_const2s:
        return Push(static_cast<uint64_t>(cursor_.Fixed<int16_t>()));
      case DW_OP_const4u:
        return Push(cursor_.Fixed<uint32_t>());
      case DW_OP_const4s:
        return Push(static_cast<uint64_t>(cursor_.Fixed<int32_t>()));
      case DW_OP_const8u:
      case DW_OP_const8s:
        return Push(cursor_.Fixed<uint64_t>());
      case DW_OP_constu:
        return Push(cursor_.Uleb());
      case DW_OP_consts:
        return Push(static_cast<uint64_t>(cursor_.Sleb()));
      default:
        return false;
    }
  }

  bool MoveValues(uint8_t operation) {
    switch (operation) {
      case DW_OP_nop:
        return true;
      case DW_OP_dup:
        return Push(Peek(0));
      case DW_OP_over:
        return Push(Peek(1));
      case DW_OP_pick:
        return Push(Peek(cursor_.Fixed<uint8_t>()));
      case DW_OP_drop:
        Pop();
        return true;
      case DW_OP_swap: {
        const uint64_t top = Pop();
        const uint64_t second = Pop();
        return Push(top) && Push(second);
      }
      case DW_OP_rot: {  // the top value goes below the next two
        const uint64_t top = Pop();
        const uint64_t second = Pop();
        const uint64_t third = Pop();
        return Push(top) && Push(third) && Push(second);
      }
      default:
        return false;
    }
  }

  bool ChangeTop(uint8_t operation) {
    switch (operation) {
      case DW_OP_abs: {
        const uint64_t value = Pop();
        return Push(Signed(value) < 0 ? -value : value);
      }
      case DW_OP_neg:
        return Push(-Pop());
      case DW_OP_not:
        return Push(~Pop());
      case DW_OP_plus_uconst:
        return Push(Pop() + cursor_.Uleb());
      default:
        return false;
    }
  }

  Result<void> CombineTwo(uint8_t operation) {
    const bool divides = operation == DW_OP_div || operation == DW_OP_mod;
    if (!divides && !Compute(operation, 0, 0)) {
      return Fail(ErrorCode::kUnsupported, "DWARF operation {:#x} in call frame information",
                  operation);
    }
    const uint64_t b = Pop();
    const uint64_t a = Pop();
    const std::optional<uint64_t> result = Compute(operation, a, b);
    if (!result) return Fail(ErrorCode::kMalformed, "a division that has no result");
    Push(*result);
    return {};
  }

  Result<void> PushRegister(uint64_t reg) {
    const int64_t offset = cursor_.Sleb();
    const std::optional<uint64_t> value = inputs_.registers.Get(reg);
    if (!value) return Fail(ErrorCode::kNotFound, "register {} is not known", reg);
    Push(*value + static_cast<uint64_t>(offset));
    return {};
  }

  Result<void> Dereference(size_t size) {
    uint64_t value = 0;
    if (size == 0 || size > sizeof(value)) {
      return Fail(ErrorCode::kMalformed, "an expression reads {} bytes", size);
    }
    const Address address(Pop());
    if (!inputs_.memory(address, std::as_writable_bytes(std::span(&value, 1)).first(size))) {
      return Fail(ErrorCode::kNotFound, "no memory at {:#x}", address.value());
    }
    Push(value);
    return {};
  }

  Result<void> Branch(bool conditional) {
    const int64_t distance = cursor_.Fixed<int16_t>();
    if (conditional && Pop() == 0) return {};
    const int64_t target = static_cast<int64_t>(cursor_.position()) + distance;
    if (target < 0 || target > static_cast<int64_t>(expression_.size())) {
      return Fail(ErrorCode::kMalformed, "an expression branches out of itself");
    }
    if (cursor_.ok()) cursor_ = DwarfCursor(expression_, static_cast<size_t>(target));
    return {};
  }

  bool Push(uint64_t value) {
    broken_ |= depth_ == kMaxValues;
    if (!broken_) values_[depth_++] = value;
    return true;
  }
  uint64_t Pop() {
    broken_ |= depth_ == 0;
    return broken_ ? 0 : values_[--depth_];
  }
  uint64_t Peek(size_t below_top) {
    broken_ |= below_top >= depth_;
    return broken_ ? 0 : values_[depth_ - 1 - below_top];
  }

  std::span<const std::byte> expression_;
  const ExpressionInputs& inputs_;
  DwarfCursor cursor_;
  std::array<uint64_t, kMaxValues> values_{};
  size_t depth_ = 0;
  bool broken_ = false;  // more was taken from the stack than lay on it, or it is too small
};

}  // namespace

Result<uint64_t> EvaluateExpression(std::span<const std::byte> expression,
                                    const ExpressionInputs& inputs,
                                    std::optional<uint64_t> initial) {
  return ExpressionMachine(expression, inputs).Run(initial);
}

}  // namespace pyrometer
