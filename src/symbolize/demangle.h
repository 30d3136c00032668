// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pyrometer/demangling.h"

namespace pyrometer {

// The longest name shown, in bytes. Enough for every name seen in practice; demangled C++ names can
// be far longer.
inline constexpr size_t kMaxNameLength = 4096;

// What follows the name of a function in that of a stub through which it is called.
inline constexpr std::string_view kStubMark = "@plt";

// `symbol` without what says of which version it is: memcpy of "memcpy@@GLIBC_2.14".
constexpr std::string_view WithoutVersion(std::string_view symbol) {
  return symbol.substr(0, symbol.find('@', 1));
}

// The name of a function as its author wrote it: C++ (Itanium) and Rust names (both manglings,
// without their hashes) demangled, without parameters, as perf shows them; other names unchanged.
// Copies and parts that compilers make of a function ("f.part.0", "f.constprop.0.cold") are that
// function. What calls a function through a stub is that function's name with kStubMark, also if
// the symbol is one of those that mold makes ("f$plt", "f$pltgot"). But with kNone each symbol is
// itself. Always printable (see base/printable.h).
// Hostile names cost little: the demangler's recursion limit stays on, and a name whose demangled
// form exceeds kMaxNameLength (back references can make it exponential) is shown mangled.
// Takes about a microsecond; callers should remember the result.
std::string Demangle(std::string_view symbol, Demangling how = Demangling::kSimple);

}  // namespace pyrometer
