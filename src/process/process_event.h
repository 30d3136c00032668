// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of processes while it happens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "process/object_mapping.h"
#include "pyrometer/ids.h"
#include "pyrometer/kernel_symbol_event.h"

namespace pyrometer {

// A mapped file as its mapping names it. Either the build id or the inode is known: the kernel
// reports one of them. Anonymous memory has a path of its own kind: see IsAnonymous().
struct MappedFile {
  std::string path;  // in the root of the process, " (deleted)" included
  BuildId build_id;
  uint32_t major = 0;
  uint32_t minor = 0;
  uint64_t inode = 0;
  uint64_t generation = 0;  // of the inode; 0 in /proc/PID/maps

  bool operator==(const MappedFile&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const MappedFile& f) {
    return H::combine(std::move(h), f.path, f.build_id, f.major, f.minor, f.inode, f.generation);
  }
};

inline constexpr std::string_view kVdsoPath = "[vdso]";

// True for memory with no file of its own that could have symbols: JIT code, stacks, heaps,
// shared anonymous memory. `path` as in PERF_RECORD_MMAP2 or /proc/PID/maps.
bool IsAnonymous(std::string_view path);

struct MappingEvent {
  MonotonicTime when;
  Pid pid;
  FileMapping range;
  MappedFile file;
};

// A new thread if the pid is the parent's, else a new process.
struct ForkEvent {
  MonotonicTime when;
  Pid pid;
  Tid tid;
  Pid parent;
};

struct ExitEvent {
  MonotonicTime when;
  Pid pid;
  Tid tid;
};

struct CommEvent {
  MonotonicTime when;
  Pid pid;
  Tid tid;
  bool exec = false;  // the name comes from execve and not from prctl or /proc
  std::string comm;
};

struct SymbolEvent {
  MonotonicTime when;
  KernelSymbolEvent symbol;
};

// `count` records did not fit into a ring before this moment; 0: some may not have, the ring was
// found full.
struct LostEvent {
  MonotonicTime when;
  uint64_t count = 0;
};

using ProcessEvent =
    std::variant<MappingEvent, ForkEvent, ExitEvent, CommEvent, SymbolEvent, LostEvent>;

inline MonotonicTime When(const ProcessEvent& event) {
  return std::visit([](const auto& e) { return e.when; }, event);
}

}  // namespace pyrometer
