// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "unwind/registers.h"

namespace pyrometer {

// What is known of a frame's registers, by DWARF number below kCfiRegisters.
struct KnownRegisters {
  std::array<uint64_t, kCfiRegisters> values{};
  uint32_t known = 0;  // bit n: values[n] is

  std::optional<uint64_t> Get(uint64_t reg) const {
    if (reg >= kCfiRegisters || ((known >> reg) & 1) == 0) return std::nullopt;
    return values[reg];
  }
  // REQUIRES: reg < kCfiRegisters, here and below.
  void Set(uint8_t reg, uint64_t value) {
    values[reg] = value;
    known |= uint32_t{1} << reg;
  }
  void Forget(uint8_t reg) {
    values[reg] = 0;
    known &= ~(uint32_t{1} << reg);
  }
  bool operator==(const KnownRegisters&) const = default;
};

}  // namespace pyrometer
