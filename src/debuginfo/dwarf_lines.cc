// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_lines.h"

#include <dwarf.h>

#include <algorithm>

#include "debuginfo/dwarf_ranges.h"

namespace pyrometer {

bool DwarfLines::Run(DwarfSourceFiles& files) {
  const DwarfSourceFiles::Program& program = files.program();
  DwarfCursor in(program.instructions);
  now_ = {};
  rows_.clear();
  last_file_ = ~uint64_t{0};
  while (!in.AtEnd() && in.ok()) {
    const auto opcode = in.Fixed<uint8_t>();
    has_row_ = has_ended_ = false;
    if (opcode >= program.opcode_base) {
      const unsigned adjusted = opcode - program.opcode_base;
      now_.address += uint64_t{adjusted / program.line_range} * program.least_instruction;
      now_.line += static_cast<uint32_t>(program.line_base +
                                         static_cast<int>(adjusted % program.line_range));
      has_row_ = true;
    } else if (opcode == 0) {
      if (!Extended(in)) return false;
    } else {
      Standard(opcode, program, in);
    }
    if (has_row_) Append(files);
    if (rows_.size() > kMostRows) return false;
    if (has_ended_) EndSequence();
  }
  return in.ok();
}

bool DwarfLines::Extended(DwarfCursor& in) {
  const uint64_t size = in.Uleb();
  const std::span<const std::byte> bytes = in.Bytes(size);
  if (!in.ok() || bytes.empty()) return in.ok();
  DwarfCursor operands(bytes);
  switch (operands.Fixed<uint8_t>()) {
    case DW_LNE_end_sequence:
      has_ended_ = true;
      return true;
    case DW_LNE_set_address:
      now_.address = operands.Fixed<uint64_t>();
      return operands.ok();
    default:
      return true;  // DW_LNE_define_file was never in use
  }
}

void DwarfLines::Standard(uint8_t opcode, const DwarfSourceFiles::Program& program,
                          DwarfCursor& in) {
  switch (opcode) {
    case DW_LNS_copy:
      has_row_ = true;
      return;
    case DW_LNS_advance_pc:
      now_.address += in.Uleb() * program.least_instruction;
      return;
    case DW_LNS_advance_line:
      now_.line += static_cast<uint32_t>(in.Sleb());
      return;
    case DW_LNS_set_file:
      now_.file = in.Uleb();
      return;
    case DW_LNS_const_add_pc:
      now_.address +=
          uint64_t{(255U - program.opcode_base) / program.line_range} * program.least_instruction;
      return;
    case DW_LNS_fixed_advance_pc:
      now_.address += in.Fixed<uint16_t>();
      return;
    default:
      // Those that change nothing of interest, and those of later versions.
      for (int i = 0; i < program.operands[opcode - 1]; ++i) in.Uleb();
  }
}

void DwarfLines::Append(DwarfSourceFiles& files) {
  if (now_.file != last_file_) {
    last_file_ = now_.file;
    last_path_ = files.PathOf(now_.file, sink_);
  }
  const SourceSink::Row row{.address = now_.address, .file = last_path_, .line = now_.line};
  if (!rows_.empty()) {
    SourceSink::Row& last = rows_.back();
    if (last.address == row.address) {
      last = row;
      return;
    }
    if (last.address < row.address && last.file == row.file && last.line == row.line) return;
  }
  rows_.push_back(row);
}

void DwarfLines::EndSequence() {
  // Compilers write them in order.
  if (!std::ranges::is_sorted(rows_, {}, &SourceSink::Row::address)) {
    std::ranges::stable_sort(rows_, {}, &SourceSink::Row::address);
  }
  while (!rows_.empty() && rows_.back().address >= now_.address) rows_.pop_back();
  if (!rows_.empty() && MayBeCode(segments_, ElfAddress(rows_.front().address))) {
    sink_.AddSequence(rows_, now_.address);
    count_ += rows_.size();
  }
  rows_.clear();
  now_ = {};
}

}  // namespace pyrometer
