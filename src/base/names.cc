// SPDX-License-Identifier: Apache-2.0
// Printed names of the contract's enumerations.
#include "pyrometer/sample.h"

namespace pyrometer {

std::string_view Name(StackEnd end) {
  switch (end) {
    case StackEnd::kNoUserStack:
      return "no user stack";
    case StackEnd::kComplete:
      return "complete";
    case StackEnd::kTruncated:
      return "truncated";
    case StackEnd::kBadFramePointer:
      return "bad frame pointer";
    case StackEnd::kUnreadable:
      return "stack unreadable";
    case StackEnd::kBadReturnAddress:
      return "bad return address";
    case StackEnd::kNoRegisters:
      return "no registers";
  }
  return "unknown";
}

std::string_view Name(Accounting::Lost reason) {
  switch (reason) {
    case Accounting::kStackMapFull:
      return "stack_map_full";
    case Accounting::kCountMapFull:
      return "count_map_full";
    case Accounting::kNoMemory:
      return "no_memory";
    case Accounting::kMapBusy:
      return "map_busy";
    case Accounting::kInternal:
    case Accounting::kLostReasons:
      break;
  }
  return "internal";
}

}  // namespace pyrometer
