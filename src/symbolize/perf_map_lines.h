// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A line of a perf map: the code in [start, end).
struct PerfMapFunction {
  static constexpr size_t kMaxName = 1024;

  uint64_t start = 0;
  uint64_t end = 0;
  std::string name;  // printable

  bool Contains(Address a) const { return a.value() >= start && a.value() < end; }
};

// What of a perf map is to be read.
struct PerfMapPart {
  uint64_t begin = 0;        // where a line begins
  uint64_t mark = 0;         // PerfMapEnd::mark of what was read up to there
  uint64_t size = 0;         // of the file
  uint64_t most_lines = 0;   // including bad ones
  uint64_t most_names = 0;   // bytes; the last line may exceed it
  bool has_stopped = false;  // nobody writes to it now: a last line without a newline counts
};
struct PerfMapEnd {
  uint64_t offset = 0;  // behind the last line
  uint64_t lines = 0;
  uint64_t bad_lines = 0;   // of these
  uint64_t mark = 0;        // what lies before `offset`, digested
  bool is_another = false;  // before `begin` lies something else: nothing was read, the file is new
  bool is_cut = false;      // there is more than was to be read
  std::optional<PerfMapFunction> tail{};  // the last line, if it has no newline and counts
};

// Takes a function, and the offset behind its line.
using OnPerfMapFunction = absl::FunctionRef<void(const PerfMapFunction&, uint64_t offset)>;

// Reads lines of the form described at PerfMap, in at most 64 MiB. `fd` stays the caller's.
// Errors: kIo; what came before it is good.
Result<PerfMapEnd> ReadPerfMapLines(int fd, const PerfMapPart& part, OnPerfMapFunction on_function);

}  // namespace pyrometer
