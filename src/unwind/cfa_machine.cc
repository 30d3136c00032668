// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfa_machine.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

#include "unwind/encoded_pointer.h"

namespace pyrometer {
namespace {

using Kind = CfiRule::Kind;

// Newer than the <dwarf.h> of some distributions: AADWARF64, section 4.4.
constexpr uint8_t kNegateRaStateWithPc = 0x2c;
constexpr uint8_t kNegateRaState = 0x2d;

// The upper two bits of an opcode; the operand is in the others.
constexpr uint8_t kPrimary = 0xc0;

// ULEB128 operands that are used as signed numbers.
std::optional<int64_t> SignedUleb(uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(value);
}

// Positions are those in the section, which pointers may be relative to.
DwarfCursor InstructionsAt(const Cie& cie, uint32_t position, uint32_t size) {
  return DwarfCursor(cie.section.first(size_t{position} + size), position);
}

}  // namespace

std::optional<FrameRules> CfaMachine::Initial(const Cie& cie) {
  cie_ = &cie;
  initial_ = nullptr;
  cursor_ = InstructionsAt(cie, cie.instructions, cie.instructions_size);
  location_ = limit_ = 0;
  rules_ = FrameRules();
  remembered_.clear();
  while (!cursor_.AtEnd()) {
    if (!Execute() || !cursor_.ok()) return std::nullopt;
  }
  return rules_;
}

void CfaMachine::Start(const Cie& cie, const Fde& fde) {
  cie_ = &cie;
  initial_ = &cie.initial;
  cursor_ = InstructionsAt(cie, fde.instructions, fde.instructions_size);
  location_ = end_ = fde.begin;
  limit_ = fde.end;
  failed_ = false;
  rules_ = cie.initial;
  remembered_.clear();
}

bool CfaMachine::Next() {
  begin_ = end_;
  if (begin_ == limit_) return false;
  while (location_ == begin_ && !cursor_.AtEnd()) {
    if (!Execute() || !cursor_.ok()) {
      failed_ = true;
      return false;
    }
  }
  end_ = location_ == begin_ ? limit_ : location_;
  return true;
}

bool CfaMachine::Execute() {
  const auto opcode = cursor_.Fixed<uint8_t>();
  const uint8_t operand = opcode & ~kPrimary;
  switch (opcode & kPrimary) {
    case DW_CFA_advance_loc:
      return Advance(operand);
    case DW_CFA_offset: {
      const std::optional<int64_t> count = SignedUleb(cursor_.Uleb());
      return count && Set(operand, {.kind = Kind::kAtCfa, .offset = Factored(*count)});
    }
    case DW_CFA_restore:
      return Restore(operand);
    default:
      return ExecuteExtended(opcode);
  }
}

bool CfaMachine::ExecuteExtended(uint8_t opcode) {
  switch (opcode) {
    case DW_CFA_nop:
    case kNegateRaState:  // the unwinder strips pointer authentication codes from every address
    case kNegateRaStateWithPc:
      return true;
    case DW_CFA_GNU_args_size:  // of interest to those who run landing pads
      cursor_.Uleb();
      return true;
    case DW_CFA_set_loc:
      return SetLocation();
    case DW_CFA_advance_loc1:
      return Advance(cursor_.Fixed<uint8_t>());
    case DW_CFA_advance_loc2:
      return Advance(cursor_.Fixed<uint16_t>());
    case DW_CFA_advance_loc4:
      return Advance(cursor_.Fixed<uint32_t>());
    case DW_CFA_remember_state:
      return Remember();
    case DW_CFA_restore_state:
      return Recall();
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_def_cfa_expression:
      return ExecuteForCfa(opcode);
    default:
      return ExecuteForRegister(opcode);
  }
}

bool CfaMachine::ExecuteForCfa(uint8_t opcode) {
  if (opcode == DW_CFA_def_cfa_expression) {
    rules_.cfa = ReadExpression(Kind::kValueExpression);
    return true;
  }
  if (opcode == DW_CFA_def_cfa_offset_sf) return SetCfaOffset(Factored(cursor_.Sleb()));
  if (opcode == DW_CFA_def_cfa_offset) {
    const std::optional<int64_t> offset = SignedUleb(cursor_.Uleb());
    return offset && SetCfaOffset(*offset);
  }
  const uint64_t reg = cursor_.Uleb();
  if (opcode == DW_CFA_def_cfa_register) return SetCfaRegister(reg);
  if (opcode == DW_CFA_def_cfa_sf) return DefineCfa(reg, Factored(cursor_.Sleb()));
  const std::optional<int64_t> offset = SignedUleb(cursor_.Uleb());
  return offset && DefineCfa(reg, *offset);
}

bool CfaMachine::ExecuteForRegister(uint8_t opcode) {
  const uint64_t reg = cursor_.Uleb();
  switch (opcode) {
    case DW_CFA_undefined:
      return Set(reg, {.kind = Kind::kUndefined});
    case DW_CFA_same_value:
      return Set(reg, {.kind = Kind::kSame});
    case DW_CFA_restore_extended:
      return Restore(reg);
    case DW_CFA_register: {
      const uint64_t other = cursor_.Uleb();
      if (other >= kCfiRegisters) return Set(reg, {.kind = Kind::kUndefined});
      return Set(reg, {.kind = Kind::kInRegister, .reg = static_cast<uint8_t>(other)});
    }
    case DW_CFA_offset_extended:
    case DW_CFA_val_offset:
    case DW_CFA_GNU_negative_offset_extended: {
      const std::optional<int64_t> count = SignedUleb(cursor_.Uleb());
      if (!count) return false;
      const bool negated = opcode == DW_CFA_GNU_negative_offset_extended;
      const Kind kind = opcode == DW_CFA_val_offset ? Kind::kCfaPlus : Kind::kAtCfa;
      return Set(reg, {.kind = kind, .offset = Factored(negated ? -*count : *count)});
    }
    case DW_CFA_offset_extended_sf:
      return Set(reg, {.kind = Kind::kAtCfa, .offset = Factored(cursor_.Sleb())});
    case DW_CFA_val_offset_sf:
      return Set(reg, {.kind = Kind::kCfaPlus, .offset = Factored(cursor_.Sleb())});
    case DW_CFA_expression:
      return Set(reg, ReadExpression(Kind::kAtExpression));
    case DW_CFA_val_expression:
      return Set(reg, ReadExpression(Kind::kValueExpression));
    default:
      return false;
  }
}

bool CfaMachine::Advance(uint64_t delta) {
  if (initial_ == nullptr) return false;
  uint64_t distance = 0;
  const uint64_t room = limit_ - location_;
  const bool overflow = __builtin_mul_overflow(delta, cie_->code_alignment, &distance);
  location_ += overflow ? room : std::min(distance, room);
  return true;
}

bool CfaMachine::SetLocation() {
  if (initial_ == nullptr) return false;
  const std::optional<uint64_t> location = ReadEncodedPointer(
      cursor_, cie_->pointer_encoding, {.section = cie_->section_address, .data = {}});
  if (!location || *location < location_) return false;
  location_ = std::min(*location, limit_);
  return true;
}

bool CfaMachine::Remember() {
  if (remembered_.size() == kMaxRemembered) return false;
  remembered_.push_back(rules_);
  return true;
}

bool CfaMachine::Recall() {
  if (remembered_.empty()) return false;
  rules_ = remembered_.back();
  remembered_.pop_back();
  return true;
}

bool CfaMachine::DefineCfa(uint64_t reg, int64_t offset) {
  if (reg >= kCfiRegisters) return false;
  rules_.cfa = {.kind = Kind::kInRegister, .reg = static_cast<uint8_t>(reg), .offset = offset};
  rules_.cfa_offset = offset;
  return true;
}

// DWARF forbids this and the next while an expression holds. libgcrypt does it all the same, and
// relies on what libgcc makes of it.
bool CfaMachine::SetCfaRegister(uint64_t reg) {
  return rules_.cfa.kind != Kind::kUndefined && DefineCfa(reg, rules_.cfa_offset);
}

bool CfaMachine::SetCfaOffset(int64_t offset) {
  rules_.cfa_offset = offset;
  if (rules_.cfa.kind == Kind::kInRegister) rules_.cfa.offset = offset;
  return rules_.cfa.kind != Kind::kUndefined;
}

bool CfaMachine::Set(uint64_t reg, const CfiRule& rule) {
  if (reg < kCfiRegisters) rules_.registers[reg] = rule;
  return true;
}

bool CfaMachine::Restore(uint64_t reg) {
  if (initial_ == nullptr) return false;
  return reg >= kCfiRegisters || Set(reg, initial_->registers[reg]);
}

int64_t CfaMachine::Factored(int64_t count) {
  // Wraps: an absurd offset is as good as any other.
  return static_cast<int64_t>(static_cast<uint64_t>(count) *
                              static_cast<uint64_t>(cie_->data_alignment));
}

CfiRule CfaMachine::ReadExpression(Kind kind) {
  const uint64_t size = cursor_.Uleb();
  const size_t position = cursor_.position();
  cursor_.Bytes(size);
  return {.kind = kind,
          .expression_size = static_cast<uint32_t>(size),
          .offset = static_cast<int64_t>(position)};
}

}  // namespace pyrometer
