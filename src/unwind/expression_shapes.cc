// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression_shapes.h"

#include <dwarf.h>

#include <limits>

#include "binary/dwarf_cursor.h"
#include "unwind/registers.h"

namespace pyrometer {
namespace {

std::optional<RegisterPlus> ReadRegisterPlus(DwarfCursor& cursor) {
  const auto operation = cursor.Fixed<uint8_t>();
  if (operation < DW_OP_breg0 || operation > DW_OP_breg31) return std::nullopt;
  const RegisterPlus read = {.reg = static_cast<uint8_t>(operation - DW_OP_breg0),
                             .offset = cursor.Sleb()};
  if (!cursor.ok()) return std::nullopt;
  return read;
}

bool IsLiteral(uint8_t operation) {
  return operation >= DW_OP_lit0 && operation <= DW_OP_lit31;
}

// What is added to the top of the stack by the rest of the expression.
std::optional<int64_t> ReadAddition(DwarfCursor& cursor) {
  if (cursor.AtEnd()) return 0;
  const auto operation = cursor.Fixed<uint8_t>();
  if (operation == DW_OP_plus_uconst) {
    const uint64_t added = cursor.Uleb();
    if (!cursor.ok() || !cursor.AtEnd() || added > std::numeric_limits<int32_t>::max()) {
      return std::nullopt;
    }
    return static_cast<int64_t>(added);
  }
  if (!IsLiteral(operation)) return std::nullopt;
  if (cursor.Fixed<uint8_t>() != DW_OP_plus || !cursor.ok() || !cursor.AtEnd()) {
    return std::nullopt;
  }
  return operation - DW_OP_lit0;
}

bool Expect(DwarfCursor& cursor, std::initializer_list<uint8_t> operations) {
  for (const uint8_t operation : operations) {
    if (cursor.Fixed<uint8_t>() != operation) return false;
  }
  return cursor.ok();
}

}  // namespace

std::optional<RegisterPlus> MatchRegisterPlus(Expression expression) {
  DwarfCursor cursor(expression);
  const std::optional<RegisterPlus> match = ReadRegisterPlus(cursor);
  return cursor.AtEnd() ? match : std::nullopt;
}

std::optional<Dereferenced> MatchDereferenced(Expression expression) {
  DwarfCursor cursor(expression);
  const std::optional<RegisterPlus> base = ReadRegisterPlus(cursor);
  if (!base || !Expect(cursor, {DW_OP_deref})) return std::nullopt;
  const std::optional<int64_t> added = ReadAddition(cursor);
  if (!added) return std::nullopt;
  return Dereferenced{.base = *base, .added = *added};
}

std::optional<PltStub> MatchPltStub(Expression expression) {
  DwarfCursor cursor(expression);
  const std::optional<RegisterPlus> base = ReadRegisterPlus(cursor);
  constexpr uint8_t kPc = DW_OP_breg0 + kAmd64.return_address;
  if (!base || !Expect(cursor, {kPc, 0, DW_OP_lit15, DW_OP_and})) return std::nullopt;
  const auto literal = cursor.Fixed<uint8_t>();
  if (!IsLiteral(literal) || !Expect(cursor, {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus}) ||
      !cursor.AtEnd()) {
    return std::nullopt;
  }
  return PltStub{.base = *base, .pushed_from = static_cast<uint8_t>(literal - DW_OP_lit0)};
}

}  // namespace pyrometer
