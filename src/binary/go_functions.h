// SPDX-License-Identifier: Apache-2.0
// The table of functions (pclntab) of a Go program, which its runtime needs to print stacks, and
// which stripping leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "binary/elf_file.h"
#include "binary/sections.h"
#include "binary/symbols.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where such a table is in a file.
struct GoFunctionTable {
  // Since that minor version of Go 1.
  enum class Format : uint8_t { kGo2, kGo16, kGo18, kGo20 };

  Format format = Format::kGo20;
  ElfAddress address;    // of the table
  ElfAddress text;       // from which functions are counted; 0 where they have addresses
  FileOffset functions;  // an array: where each begins, and where its record is
  uint64_t count = 0;    // of these; the end of the last one follows
  FileOffset records;    // from which records are counted
  FileOffset values;     // from which values by pc are counted
  uint64_t values_size = 0;
  uint8_t unit = 1;        // of distances between pcs, in bytes
  FileOffset units;        // an array of 32 bits: for each file of each unit of compilation where
                           // in `files` its name is; kGo2: for each file of the program
  FileOffset end;          // of the table
  SymbolRange names = {};  // has no symbols
  SymbolRange files = {};  // likewise: the names of source files
};

struct GoFunction {
  ElfAddress begin;
  ElfAddress end;     // where the next one begins
  uint32_t name = 0;  // for SymbolNames of the table's names
  // Where its GoPcValues of how far the stack pointer is below that at its beginning are, in bytes
  // from the table's `values`; 0: that is not known.
  uint32_t stack_depths = 0;
  FileOffset record;  // where the table has the rest
};

// Errors: kNotFound if `elf` is no Go program, or its table is not to be found; kMalformed if
// nobody can tell where its functions lie; kExhausted.
Result<GoFunctionTable> FindGoFunctions(const ElfFile& elf, const SectionTable& sections);

// From where a function counts the data that its record names, as Go does since 1.18. Nothing if
// it is not found: before Go 1.26 it is looked for in the program's data, and not where that is to
// be relocated.
std::optional<ElfAddress> FindGoFunctionData(const ElfFile& elf, const SectionTable& sections,
                                             const GoFunctionTable& table);

// Calls `visit` with every function, in ascending order, but for those that are malformed. Reads in
// steps of 64 KiB.
Result<void> ForEachGoFunction(const ElfFile& elf, const GoFunctionTable& table,
                               const std::function<void(const GoFunction&)>& visit);

// What changes within a function, as a value for each range of its code (pcvalue):
//   for (GoPcValues values(...); values.Next();) Use(values.begin(), values.end(), values.value());
class GoPcValues {
 public:
  // `bytes` are those from where the values of the function begin.
  GoPcValues(std::span<const std::byte> bytes, uint8_t unit) : bytes_(bytes), unit_(unit) {}

  // Goes to the next range. False behind the last one, and where they are malformed.
  bool Next();

  // From the beginning of the function, in bytes. Ascending, and never empty.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  int32_t value() const { return value_; }

 private:
  std::optional<uint32_t> Number();

  std::span<const std::byte> bytes_;
  uint64_t unit_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  int32_t value_ = -1;
  bool is_first_ = true;
};

}  // namespace pyrometer
