// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "pyrometer/result.h"

namespace pyrometer {

struct SandboxLimits {
  uint64_t memory = uint64_t{512} << 20;  // bytes of address space, besides what there is already
  uint64_t cpu_seconds = 600;             // of all that the process ever does
  uint64_t files = 160;                   // open at a time
};

// Leaves this process nothing but what it takes to read descriptors that it is sent and to answer:
// no capabilities, no new privileges, no files to write, little memory; any other system call (see
// sandbox.cc) ends it. There is no way back. `start_threads`, which may be empty, is called on the
// way: afterwards there can be no more, and what it starts is in the sandbox, too. REQUIRES: one
// thread. Errors: kUnsupported if the kernel, or what we run under, does not allow it.
Result<void> EnterSandbox(const SandboxLimits& limits,
                          const std::function<void()>& start_threads = {});

}  // namespace pyrometer
