// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pyrometer {

// The longest list of template arguments that is shown, in bytes without the brackets.
inline constexpr size_t kLongestArguments = 48;

// Shortens a demangled name of C++ or Rust to what tells functions apart at a glance:
// - parameters, also those of enclosing functions and lambdas, and return types go;
// - template arguments that are there by default (allocators, traits, comparisons) go, and lists
//   that are still longer than kLongestArguments become "<...>", the innermost first;
// - std::basic_string<char> is std::string, and so on; inline namespaces of the standard library
//   and "[abi:cxx11]" go.
// "(anonymous namespace)", "vtable for f" and the type in Rust's "<T as Trait>::f" stay. What does
// not look like such a name comes back as it is. Costs next to nothing beside demangling.
std::string ReadableName(std::string_view demangled);

}  // namespace pyrometer
