// SPDX-License-Identifier: Apache-2.0
// What a Go program's table of functions says of their source: files, lines and inlined calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "binary/byte_source.h"
#include "binary/elf_file.h"
#include "binary/go_functions.h"
#include "binary/sections.h"
#include "binary/symbols.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A place in the source. `file` is for SymbolNames of GoSourceLines::files().
struct GoSourcePlace {
  std::optional<uint32_t> file;
  uint32_t line = 0;  // 0: not known

  bool operator==(const GoSourcePlace&) const = default;
};

// A call that was inlined into the function.
struct GoInlinedCall {
  uint32_t name = 0;  // of what was called; for SymbolNames of the table's names
  uint32_t start_line = 0;
  GoSourcePlace call;              // from where
  std::optional<uint32_t> within;  // another one of these
};

// What is the same for a range of a function's code, in bytes from its beginning.
struct GoSourceRow {
  uint64_t begin = 0;
  uint64_t end = 0;
  GoSourcePlace place = {};
  std::optional<uint32_t> inlined = {};  // of GoSource::inlined, the innermost
};

struct GoSource {
  uint32_t start_line = 0;  // 0: not known, as before Go 1.20
  std::vector<GoInlinedCall> inlined;
  std::vector<GoSourceRow> rows;  // ascending, disjoint
};

// Reads what a table says of one function after the other. Holds the values that change with the
// pc, of which 32 MiB count, in memory.
class GoSourceLines {
 public:
  // `elf` and `table` must outlive this. Errors: those of reading, kMalformed, kExhausted.
  static Result<GoSourceLines> Open(const ElfFile& elf, const SectionTable& sections,
                                    const GoFunctionTable& table);

  // REQUIRES: functions come in ascending order; others cost more. What is malformed is left out:
  // calls of which nobody can tell where they were inlined, places without a file. Errors: those of
  // reading; kMalformed; kExhausted, from then on always: all functions together take so many steps
  // that the table must be damaged.
  Result<GoSource> Of(const GoFunction& function);

  // Where the names of files are.
  const SymbolRange& files() const { return table_.files; }

 private:
  // The numbers of a function's record.
  struct Record {
    uint32_t files = 0;  // where values begin, in bytes from the table's values; 0: there are none
    uint32_t lines = 0;
    uint32_t inlined = 0;
    uint64_t unit = 0;  // of compilation: its first entry in the array of files
    uint32_t start_line = 0;
    std::optional<uint64_t> calls;  // where the array of inlined calls is in the file
  };

  // Of what functions share, so that it is in no order.
  static constexpr size_t kSmallStep = 1024;

  GoSourceLines(const ElfFile& elf, const GoFunctionTable& table)
      : elf_(elf),
        table_(table),
        records_(elf.bytes(), table.records.value(), table.end.value()),
        units_(elf.bytes(), table.units.value(), table.end.value(), kSmallStep),
        calls_(elf.bytes(), 0, elf.bytes().size(), kSmallStep) {}

  Result<Record> RecordOf(const GoFunction& function);
  GoPcValues Values(uint32_t at) const;
  Result<std::vector<GoSourceRow>> Rows(const Record& record, uint64_t size);
  Result<std::optional<uint32_t>> FileOf(const Record& record, int32_t number);
  Result<void> AddCalls(const Record& record, uint64_t size, GoSource& source);

  const ElfFile& elf_;
  const GoFunctionTable& table_;
  std::vector<std::byte> values_;
  ReadAhead records_;
  ReadAhead units_;
  ReadAhead calls_;
  uint64_t steps_ = 0;                     // that were taken
  std::optional<uint64_t> function_data_;  // where offsets of a function's data are counted from
};

}  // namespace pyrometer
