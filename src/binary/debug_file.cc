// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_file.h"

namespace pyrometer {

std::string DebugFilePath(const BuildId& build_id) {
  const std::string hex = build_id.ToHex();
  if (hex.size() < 4) return {};
  return "/usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
}

}  // namespace pyrometer
