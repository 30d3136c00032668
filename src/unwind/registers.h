// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyrometer {

// Registers are named by their DWARF numbers. No rule has those from here on (vector and state
// registers).
inline constexpr size_t kCfiRegisters = 32;

// The registers of a machine that matter for unwinding.
struct Machine {
  uint8_t frame_pointer = 0;
  uint8_t stack_pointer = 0;
  // What call frame information calls the return address: a real register on arm64, a mere
  // column on x86_64.
  uint8_t return_address = 0;
  uint8_t general_registers = 0;  // all have numbers below this
  uint32_t preserved = 0;         // bit n: a called function gives register n back unchanged
  uint32_t exception = 0;  // likewise: it carries an exception to its handler, EH_RETURN_DATA_REGNO
  uint32_t volatiles = 0;  // likewise: none of these, and calls may change it

  constexpr bool HasLinkRegister() const { return return_address < general_registers; }
  constexpr bool Preserves(uint8_t reg) const { return ((preserved >> reg) & 1) != 0; }
};

// System V ABI, AMD64 supplement, figures 3.4 and 3.36.
inline constexpr uint8_t kRbx = 3;
inline constexpr Machine kAmd64 = {.frame_pointer = 6,
                                   .stack_pointer = 7,
                                   .return_address = 16,
                                   .general_registers = 16,
                                   .preserved = 0xf048,   // rbx, rbp, r12 to r15
                                   .exception = 0x3,      // rax, rdx
                                   .volatiles = 0x0f34};  // rcx, rsi, rdi, r8 to r11
// DWARF for the Arm 64-bit Architecture, table 1; Procedure Call Standard, section 6.1.1.
inline constexpr Machine kArm64 = {.frame_pointer = 29,
                                   .stack_pointer = 31,
                                   .return_address = 30,
                                   .general_registers = 32,
                                   .preserved = 0x3ff80000,  // x19 to x29
                                   .exception = 0xf,         // x0 to x3
                                   .volatiles = 0x3fff0};    // x4 to x17

// What this runs on.
#if defined(__x86_64__)
inline constexpr Machine kHostMachine = kAmd64;
#else
inline constexpr Machine kHostMachine = kArm64;
#endif

}  // namespace pyrometer
