// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>

namespace pyrometer {

// Where it is required, a test that may not fails instead of being skipped.
inline bool MayLoadBpf() {
  return ::geteuid() == 0 || std::getenv("PYROMETER_REQUIRE_BPF") != nullptr;
}

}  // namespace pyrometer
