// SPDX-License-Identifier: Apache-2.0
#include "base/system_error.h"

#include <cerrno>
#include <system_error>

namespace pyrometer {
namespace {

ErrorCode CodeFor(int errnum) {
  switch (errnum) {
    case EACCES:
    case EPERM:
      return ErrorCode::kPermission;
    case ENOENT:
    case ESRCH:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kExhausted;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

Error SystemError(int errnum, std::string_view what) {
  return Fail(CodeFor(errnum), "{}: {}", what, std::generic_category().message(errnum));
}

}  // namespace pyrometer
