// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unwind/frame_rules.h"

namespace pyrometer {

// A section of call frame information, with its bytes.
struct CfiSection {
  enum class Format : uint8_t { kEhFrame, kDebugFrame };

  Format format = Format::kEhFrame;
  // True if a record of length 0 ends the section; else its size does, and such records mean
  // nothing.
  bool ends_at_terminator = false;
  uint64_t address = 0;  // in the ELF's own space; 0 for .debug_frame, which is not loaded
  std::vector<std::byte> bytes;
};

// What several functions share (common information entry).
struct Cie {
  bool signal_frame = false;     // augmentation S
  bool is_switched = false;      // its frames may lie on another stack than those further in
  bool sized_additions = false;  // augmentation z: the size of what it adds to an FDE is told
  uint8_t pointer_encoding = 0;
  uint8_t return_address = 0;  // the register that stands for it
  uint64_t code_alignment = 0;
  int64_t data_alignment = 0;
  uint64_t section_address = 0;
  std::span<const std::byte> section;  // where it is, and its FDEs and all their expressions
  uint32_t instructions = 0;           // in the section
  uint32_t instructions_size = 0;
  FrameRules initial;  // after the instructions
};

// One function, or a part of one (frame description entry). Addresses are the ELF's own.
struct Fde {
  uint64_t begin = 0;  // where its instructions start
  uint64_t end = 0;
  uint64_t from = 0;          // what comes before is left to others; begin <= from < end
  uint32_t cie = 0;           // index
  uint32_t instructions = 0;  // in the section of its CIE
  uint32_t instructions_size = 0;
};

// The call frame information of one object. The sections must outlive it.
struct CallFrameInfo {
  std::vector<Cie> cies;
  std::vector<Fde> fdes;
  uint32_t bad_fdes = 0;  // malformed, or of a malformed CIE
};

}  // namespace pyrometer
