// SPDX-License-Identifier: Apache-2.0
// What the symbolizer needs to be given; src/agent provides it.
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

// What objects are, and where their symbols come from.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // Nothing if there never was such an object.
  virtual std::optional<ObjectDescription> Describe(ObjectId object) = 0;

  // Not asked for the vDSO. kNotFound if the object's file is gone; any other error if it cannot be
  // read or is no good ELF file.
  virtual Result<SymbolTable> Symbols(ObjectId object) = 0;
};

// Where processes keep the perf maps of their JIT compilers.
class PerfMapSource {
 public:
  virtual ~PerfMapSource() = default;

  // Opened with O_NOFOLLOW and O_NONBLOCK: the path is the process's own. kNotFound is normal.
  virtual Result<UniqueFd> Open(ProcessKey process) = 0;

  // True if nothing will be written to the perf map any more. A source that cannot know says no.
  virtual bool HasEnded(ProcessKey /*process*/) { return false; }
};

}  // namespace pyrometer
