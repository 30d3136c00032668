// SPDX-License-Identifier: Apache-2.0
// Recognizes the few DWARF expressions that compilers, linkers and libraries really use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pyrometer {

// register + offset
struct RegisterPlus {
  uint8_t reg = 0;
  int64_t offset = 0;
  bool operator==(const RegisterPlus&) const = default;
};

// *(base) + added
struct Dereferenced {
  RegisterPlus base;
  int64_t added = 0;
  bool operator==(const Dereferenced&) const = default;
};

// base + ((pc & 15) >= pushed_from ? 8 : 0): in a procedure linkage table, whose entries of 16
// bytes push 8 on their way.
struct PltStub {
  RegisterPlus base;
  uint8_t pushed_from = 0;
  bool operator==(const PltStub&) const = default;
};

using Expression = std::span<const std::byte>;

// Each returns nothing for an expression of another shape.
std::optional<RegisterPlus> MatchRegisterPlus(Expression expression);
std::optional<Dereferenced> MatchDereferenced(Expression expression);
std::optional<PltStub> MatchPltStub(Expression expression);

}  // namespace pyrometer
