// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pyrometer/result.h"

namespace pyrometer {

// What a process could give away. Each is one wall; the filter alone keeps everything in.
struct SandboxLevel {
  uint8_t filter = 0;           // seccomp: only the system calls that reading takes
  uint8_t no_capabilities = 0;  // none, and no way to get any
  uint8_t own_user = 0;         // one that nothing else runs as
  uint8_t empty_root = 0;       // no file system to look into
  uint8_t landlock = 0;         // the kernel refuses to open files by path, too

  bool operator==(const SandboxLevel&) const = default;
};

// "seccomp filter, no capabilities, own user", without what could not be had.
std::string Describe(const SandboxLevel& level);

// Gives up all privileges but reading open files: in two steps, since the first needs system calls
// that the second takes away. Neither can be undone. REQUIRES: one thread.
class Sandbox {
 public:
  Sandbox();
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // File system, user and capabilities, each as far as this process may. For a nursery, whose
  // children inherit it.
  void LeaveMachine();

  // Memory beyond that of now, and then system calls. For a process that goes on to read. Errors:
  // kUnsupported if there is no filter; then nothing foreign may be read.
  Result<SandboxLevel> Close(uint64_t memory);

 private:
  struct Filter;

  SandboxLevel level_;
  uint64_t mapped_bytes_ = 0;  // of memory when all began
  std::unique_ptr<Filter> filter_;
};

}  // namespace pyrometer
