// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "debuginfo/dwarf_file.h"
#include "debuginfo/source_sink.h"

namespace pyrometer {

// What a line number program begins with: how its instructions are encoded, and the source files
// that rows and inlined calls refer to. Source: DWARF 5, section 6.2.4; DWARF 2 to 4, likewise.
class DwarfSourceFiles {
 public:
  struct Program {
    uint8_t least_instruction = 1;
    int8_t line_base = 0;
    uint8_t line_range = 1;
    uint8_t opcode_base = 1;
    std::vector<uint8_t> operands;  // of the standard opcodes, from 1 on
    std::span<const std::byte> instructions;
  };

  // Reads the header of the program of `unit`, which must have one. The program's instructions are
  // valid until file.lines() is used again. Errors: kMalformed; kUnsupported.
  static Result<DwarfSourceFiles> Read(DwarfFile& file, const DwarfUnit& unit);

  // Source file number `index` of the program; kUnknown if there is none.
  SourceSink::Text PathOf(uint64_t index, SourceSink& sink);

  const Program& program() const { return program_; }

 private:
  struct SourceFile {
    DwarfValue name;
    uint64_t directory = 0;
    std::optional<SourceSink::Text> path;  // once somebody has asked for it
  };

  DwarfSourceFiles(DwarfFile& file, const DwarfUnit& unit) : file_(&file), unit_(&unit) {}
  Result<void> ReadHeader(uint64_t at);
  bool ReadOldTables(DwarfCursor& in);
  bool ReadTables(const DwarfFormat& format, DwarfCursor& in);
  const std::string& Directory(uint64_t index);

  DwarfFile* file_;
  const DwarfUnit* unit_;
  uint16_t version_ = 0;
  Program program_;
  std::vector<DwarfValue> directories_;
  std::vector<std::optional<std::string>> whole_directories_;  // likewise
  std::vector<SourceFile> files_;
};

}  // namespace pyrometer
