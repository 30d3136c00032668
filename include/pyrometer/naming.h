// SPDX-License-Identifier: Apache-2.0
// How the functions of a profile are named: what its user chooses.
#pragma once

#include <cstdint>

namespace pyrometer {

// How much of a mangled name (C++, Rust) is shown.
enum class NameForm : uint8_t {
  kSimple,  // "std::vector<int>::push_back": no parameters, long template arguments as "<...>"
  kFull,    // "std::vector<int, std::allocator<int> >::push_back(int const&)"
  kRaw,     // "_ZNSt6vectorIiSaIiEE9push_backERKi": the symbol itself
};

struct Naming {
  NameForm form = NameForm::kSimple;
  // False: an inlined call is no frame of its own. The frame is the function that the code belongs
  // to, at the line of the call in that function.
  bool inlines = true;

  bool operator==(const Naming&) const = default;
};

}  // namespace pyrometer
