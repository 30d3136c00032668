// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pyrometer::oracle {

// The longest x86_64 instruction.
inline constexpr size_t kMaxInstruction = 15;

// What an instruction does to the chain of calls.
enum class Instruction : uint8_t {
  kOther,       // goes on with the next one
  kCall,        // near call: pushes a return address
  kReturn,      // near return: pops one
  kJump,        // goes on elsewhere, or may
  kSystemCall,  // `syscall`
};

// Decodes the first instruction in `code`, x86_64 in 64-bit mode, as far as that goes (Intel SDM
// volume 2, appendix A). What is cut off or no instruction is kOther.
Instruction Classify(std::span<const std::byte> code);

// True if a near call ends where `code` ends: what stands before a return address.
bool EndsInCall(std::span<const std::byte> code);

}  // namespace pyrometer::oracle
