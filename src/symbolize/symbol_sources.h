// SPDX-License-Identifier: Apache-2.0
// What the symbolizer needs from others; src/profiler implements it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "symbolize/jit_dump_reader.h"
#include "symbolize/perf_map_reader.h"
#include "symbolize/symbol_table.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

struct ObjectDescription {
  std::string path;  // as mapped: "/usr/lib/libfoo.so", "/memfd:jit (deleted)", "[vdso]"
  BuildId build_id;
  std::vector<Segment> segments;
  bool is_vdso = false;
};

struct SymbolAnswer {
  std::shared_ptr<const SymbolTable> table;  // null: there is none
  // Then: kFileGone; kNoRoom; kNotReady: asked again in the next window; kUnreadable: for good,
  // probably.
  Unresolved reason = Unresolved::kUnreadable;
  // After so many windows there may be a better one; 0: this is the best.
  uint32_t better_after = 0;
  // It was made with debug information, and a smaller one without is there, too.
  bool has_debug_info = false;
};

// Describes objects and reads their symbols.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // Nothing if there is no such object.
  virtual std::optional<ObjectDescription> Describe(ObjectId object) = 0;

  enum class DebugInfo : uint8_t { kIfThere, kLeftOut };

  // Never called for the vDSO. Objects of one content have one table. Waits for a bounded time.
  virtual SymbolAnswer Symbols(ObjectId object, DebugInfo debug_info) = 0;
};

// Opens and reads the perf maps of processes' JIT compilers. Errors of reading beyond those of
// PerfMapReader: kInternal if it may go well when it is tried once more.
class PerfMapSource : public PerfMapReader {
 public:
  // Opened with O_NOFOLLOW and O_NONBLOCK: the path is the process's own. kNotFound is normal.
  virtual Result<UniqueFd> Open(ProcessKey process) = 0;

  // True if nothing will be written to the perf map any more; false if that is unknown.
  virtual bool HasEnded(ProcessKey /*process*/) { return false; }

  // Processes whose code this one has, too, since they have forked it; the nearest first.
  virtual std::vector<ProcessKey> InheritsFrom(ProcessKey /*process*/) { return {}; }
};

// Opens and reads the jitdumps of processes. Errors of reading: as of PerfMapSource.
class JitDumpSource : public JitDumpReader {
 public:
  using File = uint64_t;  // a number that no other has
  struct Use {
    File file;
    MonotonicTime until;  // what was announced later is of another process

    bool is_own() const { return until == MonotonicTime(UINT64_MAX); }  // else it was inherited
  };

  // Those that tell of the code of a process; the first counts before the others.
  virtual std::vector<Use> DumpsOf(ProcessKey process) = 0;

  // Opened with O_NONBLOCK.
  virtual Result<UniqueFd> OpenDump(File file) = 0;
};

}  // namespace pyrometer
