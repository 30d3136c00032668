// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pyrometer/ids.h"

namespace pyrometer {

// Where to look for the machine's state. Tests point them at captured trees.
struct Procfs {
  std::string root = "/proc";
  std::string sys = "/sys";

  // "/proc/PID/name"
  std::string Of(Pid pid, std::string_view name) const;
};

}  // namespace pyrometer
