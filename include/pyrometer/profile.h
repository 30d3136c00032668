// SPDX-License-Identifier: Apache-2.0
// A named profile: the value that symbolizing makes and that every output format is written from.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// The file (or pseudo file) that a location lies in. Shared by its locations, compared by pointer.
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
// Equal frames have the same LocationRef, within a window and from window to window.
struct NamedWindow {
  Window window;
  std::vector<LocationRef> locations;
};

struct ProfileSample {
  ProcessKey process;
  std::string comm;
  std::string thread;
  std::vector<uint32_t> stack;  // indices into Profile::locations, leaf first (kernel before user)
  StackEnd end = StackEnd::kNoUserStack;
  uint64_t count = 0;
};

// Samples of one label set over one stretch of time, independent of any output format.
struct Profile {
  std::chrono::system_clock::time_point start;
  std::chrono::nanoseconds duration{};
  Hertz frequency;
  std::vector<std::pair<std::string, std::string>> labels;  // the user's, on every sample
  std::vector<LocationRef> locations;
  std::vector<ProfileSample> samples;
};

}  // namespace pyrometer
