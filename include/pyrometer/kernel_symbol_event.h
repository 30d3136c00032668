// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pyrometer/ids.h"

namespace pyrometer {

// Code that came or went in the running kernel, a BPF program or a trampoline: PERF_RECORD_KSYMBOL.
struct KernelSymbolEvent {
  KernelAddress address;
  uint32_t size = 0;  // in bytes
  bool removed = false;
  std::string name;
};

}  // namespace pyrometer
