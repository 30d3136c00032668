// SPDX-License-Identifier: Apache-2.0
// A named profile: made from symbolized windows; every output format is written from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pyrometer/event.h"
#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Where code comes from; decides colours, suffixes and pprof mappings.
enum class CodeOrigin : uint8_t { kUser, kKernel, kJit, kUnknown };

// How good a location's name is; greater is better. A name may improve later, when a perf map grows
// or a module's symbols are read.
enum class NameQuality : uint8_t {
  kMadeUp,  // "libfoo.so+0x1234", "[unknown]"
  kSymbol,  // a function's
};

// The file (or pseudo file) that locations lie in. Shared by them.
struct CodeObject {
  std::string path;    // "/usr/lib/libfoo.so", "[vdso]", "[kernel.kallsyms]", "//anon", ...
  BuildId build_id;    // empty: unknown
  uint64_t start = 0;  // ELF vaddr range covered by its executable segments; 0,0 if unknown
  uint64_t limit = 0;
  uint64_t file_offset = 0;    // of `start`
  bool has_functions = false;  // names below are from symbols, not made up
};

// One function at a location. If a location has several, they are inlined into each other.
struct Line {
  std::string function;     // demangled; or made up: "libfoo.so+0x1234", "[unknown]"
  std::string system_name;  // as in the symbol table; equal to `function` if not mangled
  std::string file;         // source file; "" if unknown
  int64_t line = 0;         // 0 if unknown
  int64_t start_line = 0;   // where the function begins; 0 if unknown
};

// One distinct code address with its names.
struct Location {
  CodeOrigin origin = CodeOrigin::kUnknown;
  std::shared_ptr<const CodeObject> object;  // null: none
  uint64_t address = 0;     // ELF vaddr, kernel address or JIT address; pc-1 for return addresses
  std::vector<Line> lines;  // at least one; innermost inlined function first
  NameQuality quality = NameQuality::kSymbol;
  MonotonicTime since{};  // of JIT code: when it came to lie there; 0 if not known
};
using LocationRef = std::shared_ptr<const Location>;

// A frame of an earlier window, by another name than it had then.
struct Renamed {
  Frame frame;
  ProcessKey process;  // of a user address: what ran there; of others anything
  ExecId exec;
  LocationRef location;
};

// A window whose frames have names: `locations` runs parallel to `window.frames`.
// Equal frames (if they are user addresses: of the same process) have the same LocationRef within a
// window, and across windows as long as nothing new is known of them; but user addresses another
// one in each stack where it is known that other code came to lie there meanwhile.
struct NamedWindow {
  Window window;
  std::vector<LocationRef> locations;
  // Of the last window, if that was asked for: what is known by now of frames of all of them.
  std::vector<Renamed> renamed = {};
};

inline std::vector<ValueType> ValueTypeList(EventKind event) {
  const auto types = ValueTypesOf(event);
  return {types.begin(), types.end()};
}

struct ProfileSample {
  ProcessKey process;
  std::string comm;
  std::string thread;
  LabelSet labels = nullptr;    // of its process; null if they are in Profile::labels
  std::vector<uint32_t> stack;  // indices into Profile::locations, leaf first (kernel before user)
  StackEnd end = StackEnd::kNoUserStack;
  uint64_t count = 0;  // in the unit of Profile::value_types[0]
  uint64_t value = 0;  // in that of value_types[1]; a tick is worth the period it was taken at
};

// Samples of one kind of event over a period of time, independent of any output format.
struct Profile {
  // Wall clock: the begin of the first window and the end of the last.
  std::chrono::system_clock::time_point begin;
  std::chrono::system_clock::time_point end;
  std::chrono::nanoseconds duration{};  // of sampling; less than end - begin if windows are missing
  Hertz frequency;                      // of the last window; 0: no windows, or a counted event
  EventKind event = EventKind::kCpuClock;
  uint64_t event_period = 1;  // of a counted event: each sample is one of so many
  // What ProfileSample::count and ::value mean; the last one is usually of interest.
  std::vector<ValueType> value_types = ValueTypeList(EventKind::kCpuClock);
  // Of all its windows, even if it has the samples of only one label set.
  Accounting accounting;
  Labels labels;  // of every sample
  std::vector<LocationRef> locations;
  std::vector<ProfileSample> samples;

  // What a sample is worth, in the unit of value_types[1]; 0 if no window said so.
  uint64_t Period() const {
    if (FactsOf(event).counted) return event_period;
    return frequency.value == 0 ? 0 : static_cast<uint64_t>(frequency.Period().count());
  }
};

}  // namespace pyrometer
