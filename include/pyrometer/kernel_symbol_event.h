// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pyrometer/ids.h"

namespace pyrometer {

// A symbol that came or went while the kernel ran: a BPF program, a trampoline, a page of kprobes.
struct KernelSymbolEvent {
  KernelAddress address;
  uint32_t size = 0;
  bool removed = false;
  std::string name;
};

}  // namespace pyrometer
