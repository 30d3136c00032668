// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/doctor.h"

namespace pyrometer {

// What the default configuration file says, as doctor wants to know it; `doctor` itself may not
// read configurations. What is wrong in the file has its default.
AgentSetup FindAgentSetup();

}  // namespace pyrometer
