// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pyrometer {

// Of names that are shown, in bytes. Enough for every name seen in practice; demangled C++ names
// can be far longer.
inline constexpr size_t kMaxNameLength = 4096;

// The name of a function as its author wrote it: C++ (Itanium) and Rust (both manglings, without
// their hashes) demangled, without parameters, as perf shows them; any other name as it is. Always
// printable (see base/printable.h).
// Hostile names cost little: the demangler's recursion limit stays on, and one whose demangled
// form exceeds kMaxNameLength (back references can make it exponential) is shown as it is.
// Costs about a microsecond; the caller remembers the answer.
std::string Demangle(std::string_view symbol);

}  // namespace pyrometer
