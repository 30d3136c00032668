// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pyrometer/ids.h"

namespace pyrometer {

// A kernel symbol that was added or removed at run time: a BPF program, a trampoline, a page of
// kprobes.
struct KernelSymbolEvent {
  KernelAddress address;
  uint32_t size = 0;
  bool removed = false;
  std::string name;
};

}  // namespace pyrometer
