// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pyrometer {

// Servers that have debug files.
struct DebuginfodConfig {
  bool enabled = false;
  std::string urls;  // separated by blanks; "": those of DEBUGINFOD_URLS
  std::string directory = "/var/cache/pyrometer/debuginfod";  // where downloads are kept
  bool operator==(const DebuginfodConfig&) const = default;
};

}  // namespace pyrometer
