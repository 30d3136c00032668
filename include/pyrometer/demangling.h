// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pyrometer {

// How names that a compiler has mangled are shown.
enum class Demangling : uint8_t {
  kSimple,  // as in the source, without parameters: "ns::sort<int>"
  kFull,    // with them: "void ns::sort<int>(int*, int*)"
  kNone,    // as in the symbol table or debug information: "_ZN2ns4sortIiEEvPT_S2_"
};

}  // namespace pyrometer
