// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "binary/dwarf_cursor.h"
#include "unwind/call_frame_info.h"
#include "unwind/frame_rules.h"

namespace pyrometer {

// Executes call frame instructions (DWARF 5, section 6.4.2, and the extensions of GNU and Arm):
//   for (machine.Start(cie, fde); machine.Next();) Use(machine.begin(), machine.end(), ...);
//   if (machine.failed()) ...
// Instructions for registers beyond kCfiRegisters are ignored.
class CfaMachine {
 public:
  // How deep DW_CFA_remember_state may be nested. Compilers do not go beyond 2.
  static constexpr size_t kMaxRemembered = 64;

  // The rules after the initial instructions of `cie`; nothing if these are malformed.
  std::optional<FrameRules> Initial(const Cie& cie);

  // `cie`, with its initial rules, must outlive the following calls of Next.
  void Start(const Cie& cie, const Fde& fde);

  // Goes to the next range of code with constant rules. False after the last one, and at a
  // malformed instruction.
  bool Next();
  bool failed() const { return failed_; }

  // The range, never empty, in ELF addresses.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  const FrameRules& rules() const { return rules_; }

 private:
  bool Execute();
  bool ExecuteExtended(uint8_t opcode);
  bool ExecuteForCfa(uint8_t opcode);
  bool ExecuteForRegister(uint8_t opcode);
  bool Advance(uint64_t delta);
  bool SetLocation();
  bool Remember();
  bool Recall();
  bool DefineCfa(uint64_t reg, int64_t offset);
  bool SetCfaRegister(uint64_t reg);
  bool SetCfaOffset(int64_t offset);
  bool Set(uint64_t reg, const CfiRule& rule);
  bool Restore(uint64_t reg);
  int64_t Factored(int64_t count);
  CfiRule ReadExpression(CfiRule::Kind kind);

  const Cie* cie_ = nullptr;
  const FrameRules* initial_ = nullptr;  // none while the initial instructions are executed
  DwarfCursor cursor_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t location_ = 0;
  uint64_t limit_ = 0;
  bool failed_ = false;
  FrameRules rules_;
  std::vector<FrameRules> remembered_;
};

}  // namespace pyrometer
