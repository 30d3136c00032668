// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "binary/elf_file.h"
#include "debuginfo/dwarf_file.h"
#include "debuginfo/dwarf_functions.h"
#include "debuginfo/dwarf_lines.h"
#include "debuginfo/dwarf_package.h"
#include "debuginfo/dwarf_program.h"
#include "debuginfo/source_sink.h"

namespace pyrometer {

// Passes a file's units on, one after the other. One thread.
class DwarfUnitReader {
 public:
  // All must outlive this.
  struct Parts {
    DwarfFile& file;
    std::span<const Segment> segments;
    SourceSink& sink;
    // Null: malformed programs are counted with all else.
    LineProgramListener* listener = nullptr;
  };
  DwarfUnitReader(const Parts& parts, const DwarfOptions& options);

  // Split units are looked for there, too. Errors: those of reading it.
  Result<void> AddSplit(const ElfFile& elf);

  // The units that begin in [begin, end) of .debug_info; `begin` must be where one begins.
  DwarfCounts Read(uint64_t begin, uint64_t end);

 private:
  // A file with split units.
  struct SplitUnits {
    std::unique_ptr<DwarfFile> file;
    DwarfPackage package;
    std::unique_ptr<DwarfFunctions> functions;
  };

  Result<void> ReadUnit(const DwarfUnitHeader& header);
  Result<void> ReadSplit(const DwarfUnit& skeleton, DwarfSourceFiles* files);
  static Result<void> ReadSplit(const DwarfUnit& skeleton, const DwarfContribution& place,
                                SplitUnits& split, DwarfSourceFiles* files);
  void ReadLines(const DwarfUnit& unit, DwarfSourceFiles& files);
  void Count(const DwarfFunctions::Counts& functions);
  bool HasCode(const DwarfUnit& unit) const;

  const Parts parts_;
  const DwarfOptions options_;
  DwarfFunctions functions_;
  DwarfLines lines_;
  std::vector<SplitUnits> splits_;
  absl::flat_hash_set<uint64_t> lines_read_;   // programs
  absl::flat_hash_set<uint64_t> splits_read_;  // split units, by number: each has one skeleton
  DwarfCounts counts_;
};

}  // namespace pyrometer
