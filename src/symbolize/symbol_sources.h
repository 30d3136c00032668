// SPDX-License-Identifier: Apache-2.0
// What the symbolizer needs from others; src/profiler implements it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "symbolize/jit_dump_records.h"
#include "symbolize/perf_map_lines.h"
#include "symbolize/source_map.h"
#include "symbolize/symbol_table.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

struct ObjectDescription {
  std::string path;  // as mapped: "/usr/lib/libfoo.so", "/memfd:jit (deleted)", "[vdso]"
  BuildId build_id;
  std::vector<Segment> segments;
  bool is_vdso = false;
  FileHash hash{};  // of a file without a build id
  std::string go_build_id{};
};

struct SymbolAnswer {
  std::shared_ptr<const SymbolTable> table;  // null: there is none
  // Then: kFileGone; kNoRoom; kNotReady: asked again in the next window; kUnreadable: for good,
  // probably.
  Unresolved reason = Unresolved::kUnreadable;
};

struct SourceAnswer {
  std::shared_ptr<const SourceMap> map;  // null: there is none
  bool is_coming = false;                // it is being made, or a better one: to be asked for again
};

// Describes objects and reads their symbols.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // Nothing if there is no such object.
  virtual std::optional<ObjectDescription> Describe(ObjectId object) = 0;

  // Never called for the vDSO. Objects of one content have one table. Waits for a bounded time.
  virtual SymbolAnswer Symbols(ObjectId object) = 0;

  // What debug information tells of the object's code. Likewise.
  virtual SourceAnswer Sources(ObjectId /*object*/) { return {}; }

  // Objects that have better answers now than those given, since the last call.
  virtual std::vector<ObjectId> TakeImproved() { return {}; }
};

// Opens and reads what the JIT compilers of processes tell of their code.
class JitSource {
 public:
  virtual ~JitSource() = default;

  // Opened with O_NOFOLLOW and O_NONBLOCK: the path is the process's own. kNotFound is normal.
  virtual Result<UniqueFd> OpenPerfMap(ProcessKey process) = 0;

  // Reads lines of what OpenPerfMap() returned; see ReadPerfMapLines().
  virtual Result<PerfMapEnd> ReadPerfMap(int fd, const PerfMapPart& part,
                                         OnPerfMapFunction on_function) {
    return ReadPerfMapLines(fd, part, on_function);
  }

  // The jitdump that the process has mapped. kNotFound is normal.
  virtual Result<UniqueFd> OpenJitDump(ProcessKey process) {
    return Fail(ErrorCode::kNotFound, "process {} has no jitdump", process.pid.value());
  }

  // Reads records of what OpenJitDump() returned; see ReadJitDumpRecords().
  virtual Result<JitDumpEnd> ReadJitDump(ProcessKey /*process*/, int fd, const JitDumpPart& part,
                                         OnJitCode on_code) {
    return ReadJitDumpRecords(fd, part, on_code);
  }

  // Whether the window has time to wait for more of these files. What is left unread is read for
  // the next one.
  virtual bool HasTime() { return true; }

  // True if nothing will be written to these files any more; false if that is unknown.
  virtual bool HasEnded(ProcessKey /*process*/) { return false; }
};

}  // namespace pyrometer
