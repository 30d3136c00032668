// SPDX-License-Identifier: Apache-2.0
#include "tests/shared/test_paths.h"

namespace pyrometer {

std::string SourcePath(std::string_view below) {
  return std::string(PYROMETER_SOURCE_DIRECTORY "/").append(below);
}

std::string BuildPath(std::string_view below) {
  return std::string(PYROMETER_BINARY_DIRECTORY "/").append(below);
}

}  // namespace pyrometer
