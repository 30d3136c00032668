// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_status.h"

namespace pyrometer {

int ExitStatus(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return kExitUsage;
    case ErrorCode::kPermission:
    case ErrorCode::kUnsupported:
      return kExitRefused;
    case ErrorCode::kCommandNotFound:
      return kExitNotFound;
    case ErrorCode::kCommandNotExecutable:
      return kExitNotExecutable;
    case ErrorCode::kInternal:
    case ErrorCode::kNotFound:
    case ErrorCode::kMalformed:
    case ErrorCode::kIo:
    case ErrorCode::kExhausted:
    case ErrorCode::kLate:
      break;
  }
  return kExitFailed;
}

}  // namespace pyrometer
