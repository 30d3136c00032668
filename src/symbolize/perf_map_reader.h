// SPDX-License-Identifier: Apache-2.0
// The text of perf maps: lines of "START SIZE name", with hexadecimal numbers, appended as code is
// generated (Linux, tools/perf/Documentation/jit-interface.txt).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Bytes of a name, at most.
inline constexpr size_t kMostOfPerfMapName = 1024;
// A line of this form has no fewer bytes, its newline included.
inline constexpr uint64_t kLeastPerfMapLine = 6;

// The code in [start, end), as a line names it: with a printable name that is not empty.
struct PerfMapFunction {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string name;

  bool Contains(Address a) const { return a.value() >= start && a.value() < end; }
};

// What is to be read: bytes [begin, end) of a file.
struct PerfMapPart {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool begins_in_line = false;  // whose rest is skipped
};

// Some lines that end in a newline, which lie one behind the other.
struct PerfMapLines {
  struct Function {  // like PerfMapFunction
    uint64_t start = 0;
    uint64_t end = 0;
    std::string_view name;
  };
  std::span<const Function> functions{};  // in the order of the lines
  uint64_t bad = 0;                       // lines that do not have the form
  uint64_t end = 0;                       // the offset behind all of them
  bool ends_in_line = false;  // the last one is too long, and what follows is the rest of it
};
// What it is given is valid during the call.
using PerfMapSink = absl::FunctionRef<void(const PerfMapLines&)>;

class PerfMapReader {
 public:
  virtual ~PerfMapReader() = default;

  // Gives `sink` all lines of `part`, in order. Returns what a last line without a newline says, if
  // it has the form. `fd` stays the caller's. Errors: kIo; what `sink` has got is true all the
  // same, so that the rest may be read later.
  virtual Result<std::optional<PerfMapFunction>> Read(int fd, const PerfMapPart& part,
                                                      PerfMapSink sink) = 0;
};

// Reads right here.
class DirectPerfMapReader : public PerfMapReader {
 public:
  Result<std::optional<PerfMapFunction>> Read(int fd, const PerfMapPart& part,
                                              PerfMapSink sink) override;
};

}  // namespace pyrometer
