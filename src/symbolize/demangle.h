// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pyrometer {

// The name of a function as its author wrote it: C++ (Itanium) and Rust (both manglings, without
// their hashes) demangled, without parameters, as perf shows them; any other name as it is. Always
// printable (see printable.h).
// Hostile names cost little: the demangler's recursion limit stays on, and one whose demangled
// form exceeds kMaxNameLength (back references can make it exponential) is shown as it is.
// Costs about a microsecond; the caller remembers the answer.
std::string Demangle(std::string_view symbol);

}  // namespace pyrometer
