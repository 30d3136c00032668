// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// A sample that the kernel side could not unwind, with all it takes to unwind it in user space; or
// could not store.
struct ColdSample {
  ProcessKey process;
  ExecId exec;
  std::string comm;    // of the process (group leader)
  std::string thread;  // of the thread
  MonotonicTime when;
  EventKind event = EventKind::kCpuClock;
  uint32_t exec_pages = 0;  // mm->exec_vm at that moment; see pyro_process
  std::vector<Frame> kernel_frames;
  Address pc;
  bool after_call = false;                           // pc follows a system call instruction
  std::array<uint64_t, PYRO_REGISTERS> registers{};  // by DWARF number
  std::vector<std::byte> stack;                      // from the stack pointer upwards
  uint32_t stack_holes = 0;                          // in it; see pyro_cold_sample
  // If the kernel side has unwound it: its frames, leaf first, and how they end. Then there is
  // nothing from `exec_pages` on but the kernel frames.
  struct Unwound {
    std::vector<Frame> frames;
    StackEnd end = StackEnd::kNoUserStack;
  };
  std::optional<Unwound> unwound;
};

}  // namespace pyrometer
