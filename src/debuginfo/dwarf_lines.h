// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "debuginfo/dwarf_source_files.h"
#include "debuginfo/source_sink.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Runs line number programs. Source: DWARF 5, section 6.2.
class DwarfLines {
 public:
  // Of one sequence. Compilers write one for each function, or for each unit.
  static constexpr size_t kMostRows = size_t{4} << 20;

  // What does not begin in executable segments is left out: linkers move the lines of code that
  // they drop to 0 or to the end of the address space. `sink` must outlive this.
  DwarfLines(std::span<const Segment> segments, SourceSink& sink)
      : segments_(segments), sink_(sink) {}

  // False if it is malformed; the sequences until there are passed on.
  bool Run(DwarfSourceFiles& files);

  // Rows passed on since the last call.
  uint64_t TakeRows() { return std::exchange(count_, 0); }

 private:
  struct Registers {
    uint64_t address = 0;
    uint64_t file = 1;
    uint32_t line = 1;
  };

  bool Extended(DwarfCursor& in);
  void Standard(uint8_t opcode, const DwarfSourceFiles::Program& program, DwarfCursor& in);
  void Append(DwarfSourceFiles& files);
  void EndSequence();

  const std::span<const Segment> segments_;
  SourceSink& sink_;
  Registers now_;
  bool has_row_ = false;    // the last instruction appends one
  bool has_ended_ = false;  // or ends the sequence
  uint64_t last_file_ = 0;  // whose path is last_path_
  SourceSink::Text last_path_ = SourceSink::kUnknown;
  std::vector<SourceSink::Row> rows_;  // of the sequence
  uint64_t count_ = 0;
};

}  // namespace pyrometer
