// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// An Error for `errnum`, with the code that fits it (EACCES and EPERM: kPermission, ENOENT and
// ESRCH: kNotFound, ENOMEM, EMFILE, ENOSPC: kExhausted, ...). `what` says what failed, on what:
// the message is "<what>: <strerror>".
Error SystemError(int errnum, std::string_view what);

}  // namespace pyrometer
