// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pyrometer/result.h"

namespace pyrometer {

// What a Go program's table of functions (pclntab) begins with, in each of its formats. Formats:
// the Go distribution's src/runtime/symtab.go (pcHeader, functab), runtime2.go (_func) and, for the
// first one, src/cmd/link/internal/ld/pcln.go of Go 1.12.
struct GoHeader {
  enum class Format : uint8_t { kGo12, kGo116, kGo118, kGo120 };  // the first version to write it

  static constexpr size_t kSize = 72;  // of the longest one

  Format format = Format::kGo12;
  uint8_t quantum = 1;     // addresses in the table are counted in this many bytes
  uint64_t functions = 0;  // how many
  uint64_t text = 0;       // kGo118, kGo120: where code begins; 0 since Go 1.26
  // Offsets in the table.
  uint64_t names = 0;
  uint64_t unit_files = 0;  // not in kGo12
  uint64_t files = 0;       // in kGo12 behind the functions
  uint64_t pc_values = 0;
  uint64_t function_table = 0;
  uint64_t function_records = 0;

  // Of a table that has `table_size` bytes at most and begins with `bytes`. Nothing if this is no
  // such header, or contradicts itself.
  static std::optional<GoHeader> Read(std::span<const std::byte> bytes, uint64_t table_size);
};

// One function, as the table has it.
struct GoFunction {
  uint64_t begin = 0;     // in the ELF's own space
  uint64_t next = 0;      // where the next one begins; greater than `begin`
  uint32_t name = 0;      // as for GoTable::Name
  uint32_t unit = 0;      // of compilation, as for GoTable::Path
  uint32_t stack_at = 0;  // as for GoTable::PcValues: bytes of the stack that it has taken; like:
  uint32_t files_at = 0;
  uint32_t lines_at = 0;
  uint64_t arrays = 0;  // of PcDataAt and FuncData: their position in the table
  uint32_t pc_data_count = 0;
  uint8_t func_data_count = 0;
};

// A Go program's table of functions. Everything it holds is hostile: each look-up checks what it
// returns.
class GoTable {
 public:
  // Errors: kMalformed if `bytes` are no such table.
  static Result<GoTable> Make(std::vector<std::byte> bytes);

  const GoHeader& header() const { return header_; }
  uint64_t size() const { return bytes_.size(); }

  // True if entries are offsets from where the text begins.
  bool is_relative() const { return header_.format >= GoHeader::Format::kGo118; }
  void PlaceText(uint64_t address) { text_ = address; }

  // Where function `index` begins, or with index == header().functions the last one ends. Raw: as
  // the table has it.
  std::optional<uint64_t> RawEntry(uint64_t index) const;
  std::optional<uint64_t> Entry(uint64_t index) const;

  // REQUIRES: index < header().functions. Nothing if its record is malformed.
  std::optional<GoFunction> Function(uint64_t index) const;

  // Where the values of PCDATA `which` of a function are, as for PcValues(); 0: there are none.
  uint32_t PcDataAt(const GoFunction& function, uint32_t which) const;

  // FUNCDATA `which` of a function: an address, or where is_relative() an offset from one that the
  // module data tells. Nothing if there is none.
  std::optional<uint64_t> FuncData(const GoFunction& function, uint32_t which) const;

  // What begins at such a position, up to the end of the table; empty for none.
  std::span<const std::byte> PcValues(uint32_t at) const;

  // Longer names and paths are none. The longest known, of generated generic code, have 5,000
  // bytes.
  static constexpr size_t kMaxString = size_t{64} << 10;

  // Nothing if there is none. Valid as long as the table.
  std::optional<std::string_view> Name(uint32_t at) const;
  // Of bounded cost, whatever is there.
  bool LooksLikeName(uint32_t at) const;
  bool IsName(uint32_t at, std::string_view name) const;

  // Where the path of a unit's file number `file` is; then the path.
  std::optional<uint32_t> PathAt(uint32_t unit, int32_t file) const;
  std::optional<std::string_view> Path(uint32_t at) const;

 private:
  GoTable(std::vector<std::byte> bytes, const GoHeader& header)
      : bytes_(std::move(bytes)), header_(header) {}

  template <typename T>
  std::optional<T> At(uint64_t position) const;
  std::optional<uint64_t> RawAddress(uint64_t position) const;
  std::optional<uint32_t> RecordAt(uint64_t index) const;
  std::string_view Text(uint64_t begin, uint64_t at, uint64_t end) const;
  std::string_view TextOfName(uint32_t at) const;

  std::vector<std::byte> bytes_;
  GoHeader header_;
  uint64_t text_ = 0;
};

}  // namespace pyrometer
