// SPDX-License-Identifier: Apache-2.0
// A named profile: the value that symbolizing makes and that every output format is written from.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Where code comes from: decides colours, suffixes and pprof mappings.
enum class CodeOrigin : uint8_t { kUser, kKernel, kJit, kUnknown };

// How good a location's name is; better ones are greater. A name may become better later: when a
// perf map is written on, or a module's symbols are read.
enum class NameQuality : uint8_t {
  kMadeUp,  // "libfoo.so+0x1234", "[unknown]"
  kSymbol,  // a function's
};

// The file (or pseudo file) that a location lies in. Shared by its locations.
struct CodeObject {
  std::string path;    // "/usr/lib/libfoo.so", "[vdso]", "[kernel.kallsyms]", "//anon", ...
  BuildId build_id;    // empty: none known
  uint64_t start = 0;  // ELF vaddr range covered by its executable segments; 0,0 if unknown
  uint64_t limit = 0;
  uint64_t file_offset = 0;    // of `start`
  bool has_functions = false;  // names below are from symbols, not made up
};

// One function at a location. Several of them at one location are inlined into each other.
struct Line {
  std::string function;     // demangled; or made up: "libfoo.so+0x1234", "[unknown]"
  std::string system_name;  // as in the symbol table; equal to `function` if not mangled
  std::string file;         // source file; "" if unknown
  int64_t line = 0;         // 0 if unknown
};

// One distinct code address with its names.
struct Location {
  CodeOrigin origin = CodeOrigin::kUnknown;
  std::shared_ptr<const CodeObject> object;  // null: none
  uint64_t address = 0;     // ELF vaddr, kernel address or JIT address; pc-1 for return addresses
  std::vector<Line> lines;  // at least one; innermost inlined function first
  NameQuality quality = NameQuality::kSymbol;
};
using LocationRef = std::shared_ptr<const Location>;

// A window whose frames have names: `locations` runs parallel to `window.frames`.
// Equal frames (of one process, where they are user addresses) have the same LocationRef within a
// window, and from window to window while nothing new is known of them.
struct NamedWindow {
  Window window;
  std::vector<LocationRef> locations;
};

inline std::vector<ValueType> ValueTypeList(EventKind event) {
  const auto types = ValueTypesOf(event);
  return {types.begin(), types.end()};
}

struct ProfileSample {
  ProcessKey process;
  std::string comm;
  std::string thread;
  LabelSet labels = nullptr;    // of its process; null where they are the profile's
  std::vector<uint32_t> stack;  // indices into Profile::locations, leaf first (kernel before user)
  StackEnd end = StackEnd::kNoUserStack;
  uint64_t count = 0;  // in the unit of Profile::value_types[0]
  uint64_t value = 0;  // of value_types[1]; a tick is worth a period of the window it came in
};

// Samples of one kind of event over one stretch of time, independent of any output format.
struct Profile {
  // By the wall clock: from the first window's begin to the last one's end.
  std::chrono::system_clock::time_point begin;
  std::chrono::system_clock::time_point end;
  std::chrono::nanoseconds duration{};  // of sampling: windows may be missing between the two
  Hertz frequency;                      // of the last window; 0: there was none
  EventKind event = EventKind::kCpuClock;
  // What ProfileSample::count and ::value mean; the last one is what one usually looks at.
  std::vector<ValueType> value_types = ValueTypeList(EventKind::kCpuClock);
  // Of all its windows, even if it holds the samples of one label set only.
  Accounting accounting;
  Labels labels;  // of every sample
  std::vector<LocationRef> locations;
  std::vector<ProfileSample> samples;
};

}  // namespace pyrometer
