// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/instruction.h"

namespace pyrometer::oracle {
namespace {

constexpr unsigned kGroup5 = 0xFF;  // call, jmp and others by ModRM.reg
constexpr unsigned kGroup5Call = 2;
constexpr unsigned kGroup5Jump = 4;

unsigned At(std::span<const std::byte> code, size_t index) {
  return std::to_integer<unsigned>(code[index]);
}

bool IsPrefix(unsigned byte) {
  switch (byte) {
    case 0x26:
    case 0x2E:
    case 0x36:
    case 0x3E:  // notrack
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xF0:
    case 0xF2:  // bnd
    case 0xF3:
      return true;
    default:
      return byte >= 0x40 && byte <= 0x4F;  // REX
  }
}

unsigned ModRmReg(unsigned mod_rm) {
  return (mod_rm >> 3) & 7;
}

Instruction ClassifyTwoByte(unsigned opcode) {
  if (opcode == 0x05) return Instruction::kSystemCall;
  const bool conditional_jump = opcode >= 0x80 && opcode <= 0x8F;
  return conditional_jump ? Instruction::kJump : Instruction::kOther;
}

Instruction ClassifyGroup5(unsigned mod_rm) {
  switch (ModRmReg(mod_rm)) {
    case kGroup5Call:
      return Instruction::kCall;
    case kGroup5Jump:
      return Instruction::kJump;
    default:
      return Instruction::kOther;
  }
}

// Bytes of an instruction with this ModRM byte from there on: SIB and displacement included.
size_t ModRmLength(std::span<const std::byte> code) {
  const unsigned mod = At(code, 0) >> 6;
  const unsigned rm = At(code, 0) & 7;
  if (mod == 3) return 1;
  const bool sib = rm == 4;
  size_t length = sib ? 2 : 1;
  if (mod == 1) return length + 1;
  if (mod == 2) return length + 4;
  const bool no_base = sib ? code.size() > 1 && (At(code, 1) & 7) == 5 : rm == 5;
  return no_base ? length + 4 : length;
}

}  // namespace

Instruction Classify(std::span<const std::byte> code) {
  size_t at = 0;
  while (at < code.size() && IsPrefix(At(code, at))) ++at;
  if (at >= code.size()) return Instruction::kOther;
  const unsigned opcode = At(code, at);
  const bool has_next = at + 1 < code.size();
  switch (opcode) {
    case 0xE8:
      return Instruction::kCall;
    case 0xC2:
    case 0xC3:
      return Instruction::kReturn;
    case 0xE0:  // loopne, loope, loop, jrcxz
    case 0xE1:
    case 0xE2:
    case 0xE3:
    case 0xE9:
    case 0xEB:
      return Instruction::kJump;
    case 0x0F:
      return has_next ? ClassifyTwoByte(At(code, at + 1)) : Instruction::kOther;
    case kGroup5:
      return has_next ? ClassifyGroup5(At(code, at + 1)) : Instruction::kOther;
    default:
      return opcode >= 0x70 && opcode <= 0x7F ? Instruction::kJump : Instruction::kOther;
  }
}

bool EndsInCall(std::span<const std::byte> code) {
  constexpr size_t kDirect = 5;
  if (code.size() >= kDirect && At(code, code.size() - kDirect) == 0xE8) return true;
  for (size_t length = 2; length <= 7 && length <= code.size(); ++length) {
    const std::span<const std::byte> tail = code.last(length);
    if (At(tail, 0) == kGroup5 && ModRmReg(At(tail, 1)) == kGroup5Call &&
        1 + ModRmLength(tail.subspan(1)) == length) {
      return true;
    }
  }
  return false;
}

}  // namespace pyrometer::oracle
