// SPDX-License-Identifier: Apache-2.0
// What the symbolizer needs from others; src/profiler implements it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

struct ObjectDescription {
  std::string path;  // as mapped: "/usr/lib/libfoo.so", "/memfd:jit (deleted)", "[vdso]"
  BuildId build_id;
  std::vector<Segment> segments;
  bool is_vdso = false;
};

// Describes objects and reads their symbols.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // Nothing if there is no such object.
  virtual std::optional<ObjectDescription> Describe(ObjectId object) = 0;

  // Never called for the vDSO. kNotFound if the object's file is gone; any other error if it cannot
  // be read or is not a valid ELF file.
  virtual Result<SymbolTable> Symbols(ObjectId object) = 0;
};

// Opens the perf maps of processes' JIT compilers.
class PerfMapSource {
 public:
  virtual ~PerfMapSource() = default;

  // Opened with O_NOFOLLOW and O_NONBLOCK: the path is the process's own. kNotFound is normal.
  virtual Result<UniqueFd> Open(ProcessKey process) = 0;

  // True if nothing will be written to the perf map any more; false if that is unknown.
  virtual bool HasEnded(ProcessKey /*process*/) { return false; }
};

}  // namespace pyrometer
