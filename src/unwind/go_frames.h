// SPDX-License-Identifier: Apache-2.0
// The frames of a Go program that its .debug_frame, on x86_64, takes for ordinary ones: where
// stacks begin, are switched, or are a signal's. A stripped program has no .debug_frame at all; see
// go_call_frame_info.h.
#pragma once

#include <cstdint>
#include <vector>

#include "binary/elf_file.h"
#include "binary/sections.h"

namespace pyrometer {

// Of code, in the ELF's own address space.
struct GoFrames {
  enum class Kind : uint8_t {
    kOutermost,  // no frame lies above
    kSignal,     // what a signal handler returns to: the kernel's signal frame
    kSwitched,   // perhaps on another stack; the frame pointer leads to the frame
    kLost,       // on another stack, and nothing leads back
    kBeginning,  // as where functions begin
  };
  uint64_t begin = 0;
  uint64_t end = 0;
  Kind kind = Kind::kOutermost;
  bool operator==(const GoFrames&) const = default;
};

// Those of a Go program or library (x86_64) by its table of functions; ascending.
// Nothing if it has no such table, or one of other code.
std::vector<GoFrames> FindGoFrames(const ElfFile& elf, const SectionTable& sections);

}  // namespace pyrometer
