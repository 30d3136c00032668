// SPDX-License-Identifier: Apache-2.0
#include "symbolize/unresolved.h"

namespace pyrometer {

std::string_view Name(Unresolved reason) {
  switch (reason) {
    case Unresolved::kUnmapped:
      return "unmapped";
    case Unresolved::kNoSymbols:
      return "no_symbols";
    case Unresolved::kFileGone:
      return "file_gone";
    case Unresolved::kUnreadable:
      return "unreadable";
    case Unresolved::kJit:
      return "jit";
    case Unresolved::kKernel:
      return "kernel";
    case Unresolved::kNoRoom:
      return "no_room";
    case Unresolved::kNotReady:
      return "not_ready";
    case Unresolved::kOtherKind:
      return "other_kind";
  }
  return "unknown";
}

}  // namespace pyrometer
