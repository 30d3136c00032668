// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pyrometer {

// Takes what debug information says of an object's code: its functions, the calls that were inlined
// into them, and which line of which source file instructions come from. Given by the readers in
// this module, unit by unit; addresses are in the ELF's own space.
//
// Readers pass on what they find if it makes sense in itself (ranges begin before they end, depths
// grow by one); what contradicts something else (functions that overlap) is the sink's to decide.
class SourceSink {
 public:
  using Text = uint32_t;  // a number that stands for a string
  static constexpr Text kUnknown = ~Text{0};

  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;  // greater than `begin`
  };

  // A function that has code of its own, or a call inlined into one.
  struct Scope {
    uint32_t depth = 0;         // 0: a function; else inlined into the last scope of `depth` - 1
    Text name = kUnknown;       // raw: mangled if the compiler tells that
    Text call_file = kUnknown;  // depth > 0: where the call is
    uint32_t call_line = 0;     // likewise; 0: unknown
    std::span<const Range> ranges;  // not empty
  };

  // The instructions from `address` to that of the next row of the sequence.
  struct Row {
    uint64_t address = 0;
    Text file = kUnknown;
    uint32_t line = 0;  // 0: no line
  };

  virtual ~SourceSink() = default;

  // The number of a string. Equal strings may be given again (each unit names its files anew), and
  // need not get equal numbers. A source file's path is whole: with the directory, and relative
  // only if the compiler did not tell of what.
  virtual Text AddName(std::string_view name) = 0;
  virtual Text AddPath(std::string_view directory, std::string_view file) = 0;

  // In pre-order: a function, then its inlined calls, those inlined into these after each.
  virtual void AddScope(const Scope& scope) = 0;

  // A run of rows in ascending order of addresses, of which the last one ends at `end`. Rows of the
  // same address: the last one counts.
  virtual void AddSequence(std::span<const Row> rows, uint64_t end) = 0;

  // True if no more is wanted: there is no room, or it took too long. Readers ask once for each
  // unit.
  virtual bool is_full() const = 0;
};

// Hears which line number program the rows are of that a sink is told next: units may share one.
class LineProgramListener {
 public:
  virtual ~LineProgramListener() = default;
  virtual void BeginProgram(uint64_t offset) = 0;
  // The one begun last is malformed, from where its rows have ended.
  virtual void NoteMalformedProgram() = 0;
};

}  // namespace pyrometer
