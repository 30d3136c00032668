// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "debuginfo/dwarf_names.h"
#include "debuginfo/dwarf_source_files.h"
#include "debuginfo/source_sink.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Finds the functions of units that have code, and the calls inlined into them.
class DwarfFunctions {
 public:
  // So deep entries may lie in one another. Compilers need 40.
  static constexpr size_t kMostNested = 512;
  // Of a function and all calls inlined into it.
  static constexpr size_t kMostRanges = size_t{1} << 20;

  struct Counts {
    uint64_t functions = 0;
    uint64_t inlined_calls = 0;
    uint64_t malformed = 0;  // functions and calls whose code is not told in a known way
  };

  // Code outside of executable segments is left out. All must outlive this.
  DwarfFunctions(DwarfFile& file, std::span<const Segment> segments, SourceSink& sink)
      : file_(file), segments_(segments), sink_(sink), names_(file, sink) {}

  // The functions of a unit, whose bytes are `bytes`. `files`: for the places of calls; may be
  // null. False if the unit is malformed; the functions until there are passed on.
  bool ReadAll(const DwarfUnit& unit, std::span<const std::byte> bytes, DwarfSourceFiles* files);

  // Since the last call.
  Counts TakeCounts() { return std::exchange(counts_, {}); }

 private:
  static constexpr uint32_t kNoFunction = ~uint32_t{0};

  // What entries lie in.
  struct Level {
    uint32_t function = kNoFunction;  // that has code
    uint32_t depth = 0;               // in it: of the innermost call
    bool has_code_around = false;     // this function or one that it lies in
    bool is_in_function = false;      // with code or without
  };
  // A function, or a call inlined into one. Kept until the outermost function is read: the entries
  // of a function may have other functions in between, which are told after it.
  struct Found {
    uint32_t function = 0;
    SourceSink::Scope scope;
    size_t first = 0;  // of its ranges
    size_t ranges = 0;
  };

  bool ReadEntry(uint64_t code, DwarfCursor& in);
  bool PassChildren(const DwarfDie& die, DwarfCursor& in) const;
  Level Enter(const Level& outer, const DwarfDie& die);
  bool ReadRanges(const DwarfDie& die, Found& found);
  void Flush();

  DwarfFile& file_;
  const std::span<const Segment> segments_;
  SourceSink& sink_;
  DwarfNames names_;
  Counts counts_;
  // Of the unit being read.
  const DwarfUnit* unit_ = nullptr;
  std::span<const std::byte> bytes_;
  DwarfSourceFiles* files_ = nullptr;
  uint32_t functions_ = 0;  // found_ has functions up to this number
  DwarfDie die_;
  std::vector<Level> levels_;
  std::vector<Found> found_;
  std::vector<SourceSink::Range> ranges_;
};

}  // namespace pyrometer
