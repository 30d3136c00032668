// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/ids.h"

namespace pyrometer {

// Of this program, as it lies in memory. Empty if it was linked without one.
BuildId OwnBuildId();

}  // namespace pyrometer
