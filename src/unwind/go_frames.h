// SPDX-License-Identifier: Apache-2.0
// The frames of a Go program that its .debug_frame, on x86_64, takes for ordinary ones: where
// stacks begin, are switched, or are a signal's. A stripped program has no .debug_frame at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "unwind/expression_machine.h"

namespace pyrometer {

// Of code, in the ELF's own address space.
struct GoFrames {
  enum class Kind : uint8_t {
    kOutermost,  // no frame lies above
    kSignal,     // what a signal handler returns to: the kernel's signal frame
  };
  uint64_t begin = 0;
  uint64_t end = 0;
  Kind kind = Kind::kOutermost;
  bool operator==(const GoFrames&) const = default;
};

// Those of a Go program (x86_64, Go 1.18 or newer) by its table of functions; ascending. `entry`:
// its entry point. Nothing if this is no such table, or not that of a program whose entry point is
// Go's; malformed functions are left out.
std::vector<GoFrames> ReadGoFrames(std::span<const std::byte> pclntab, uint64_t entry,
                                   const MemoryReader& code);

// Of an object, by its section .gopclntab, which stripping leaves there.
std::vector<GoFrames> FindGoFrames(const ElfFile& elf, const SectionTable& sections);

}  // namespace pyrometer
