// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/procfs.h"
#include "base/unique_fd.h"
#include "process/address_space_sink.h"
#include "process/object_info.h"
#include "process/object_inspector.h"
#include "process/process_counters.h"
#include "process/program_mappings.h"
#include "process/task_record.h"
#include "pyrometer/ids.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Knows every process of the machine, now and in the recent past: what it had mapped where, and
// which file that was. A thread of its own applies kernel events as they come.
// Thread-safe: every method may be called from any thread.
class ProcessTracker {
 public:
  struct Options {
    Procfs procfs;
    // Event buffer per CPU, rounded up to a power of two of pages; smaller if the kernel refuses.
    size_t ring_bytes = size_t{512} << 10;
    // How long an ended process and a replaced mapping stay known: two windows.
    std::chrono::nanoseconds keep = std::chrono::seconds(20);
    // Files kept open so that they stay readable when deleted or when their process is gone.
    // 0: half of RLIMIT_NOFILE, at most 2048.
    size_t held_files = 0;
  };
  using TaskSnapshot = std::function<Result<std::vector<TaskRecord>>()>;

  // Opens the event stream, then scans /proc; on return every process is known and published.
  // `inspector`, `sink` and what `snapshot` refers to must outlive the tracker. If `snapshot`
  // is empty or fails, exec ids stay unknown: then nothing is published until a process execs.
  // Errors: kPermission or kUnsupported if the kernel refuses the events.
  static Result<std::unique_ptr<ProcessTracker>> Start(Options options, ObjectInspector& inspector,
                                                       AddressSpaceSink& sink,
                                                       TaskSnapshot snapshot);
  ~ProcessTracker();
  ProcessTracker(const ProcessTracker&) = delete;
  ProcessTracker& operator=(const ProcessTracker&) = delete;

  // Applies all events up to window.end, then turns user addresses into object frames where the
  // sample's process had one and the same file mapped while the sample was seen. Frames in
  // anonymous memory, those at places that changed meanwhile and those of unknown processes stay as
  // they are; a return address that was in no executable mapping ends its stack
  // (StackEnd::kBadReturnAddress). The leaf stays, except in the middle of an exec, where the user
  // registers are still those of the old program (kNoUserStack). Processes that share a stack but
  // not its meaning get stacks of their own. Forgets what is older than window.end - Options::keep:
  // call it with windows in order.
  Window Resolve(Window window);

  // Whoever names the windows is done with those that end up to `named`: closes the files of
  // objects that no later window can ask for, some time after the last process that had one mapped
  // is forgotten. Looks through all processes, at most once in Options::keep.
  void CloseUnusedFiles(MonotonicTime named);

  // The kernel side found that `process` has other executable memory than was published: applies
  // all events up to now, reads its /proc/PID/maps and publishes it again. Reads 20 times at once
  // and then once a second for each process; refused beyond that, and counted. Nothing happens if
  // the process is unknown or gone, or if its pid is another's by now.
  void Recheck(const ProcessKey& process);

  // What program `exec` of `process` had mapped executable at `when`, by all events up to then. A
  // process that lives and is unknown is read from /proc. Nothing if it cannot be known any more.
  // Cheap: reads the rings only if `when` is later than what has been read, and copies.
  std::optional<ProgramMappings> MappingsAt(const ProcessKey& process, ExecId exec,
                                            MonotonicTime when);

  // Nothing if there is no such object.
  std::optional<ObjectInfo> Object(ObjectId id) const;

  // The object's file, for pread only (the offset is shared). Errors: kNotFound if it was never
  // opened, is the vDSO, or is gone by now.
  Result<UniqueFd> OpenObject(ObjectId id);

  // The root directory of a living process that has the object mapped, for OpenInRoot only: where
  // what belongs to the object may lie. Errors: kNotFound, kPermission.
  Result<UniqueFd> OpenRootOf(ObjectId id);

  // /tmp/perf-PID.map as the process itself sees it: in its root, with the pid of its innermost
  // pid namespace. Only a regular file, not a symbolic link, that belongs to the process's user
  // or root. Works after the process's death if it had mapped anonymous executable memory.
  // Errors: kNotFound, kPermission.
  Result<UniqueFd> OpenPerfMap(const ProcessKey& process);

  // True if the process was known and is gone. It may be gone before this is true.
  bool HasEnded(const ProcessKey& process) const;

  // Kernel symbols that came or went since the last call, in order.
  std::vector<KernelSymbolEvent> TakeKernelSymbolEvents();

  ProcessCounters counters() const;

 private:
  class State;
  explicit ProcessTracker(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
