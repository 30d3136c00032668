// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pyrometer/ids.h"

namespace pyrometer {

// Where distributions install the separate debug file of an object with this build id:
// "/usr/lib/debug/.build-id/ab/cdef0123.debug". Empty if the build id has fewer than two bytes.
// Convention: GDB manual, "Debugging Information in Separate Files".
std::string DebugFilePath(const BuildId& build_id);

}  // namespace pyrometer
