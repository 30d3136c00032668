// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/unique_fd.h"
#include "process/object_info.h"
#include "process/process_counters.h"
#include "process/program_mappings.h"
#include "process/resolved_window.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// What the rest of the engine asks about processes: ProcessTracker knows it of this machine,
// ProcessHistory of a recorded one. Whether threads may share it, the class says.
class ProcessKnowledge {
 public:
  virtual ~ProcessKnowledge() = default;

  // Turns user addresses into object frames where the sample's process had one and the same file
  // mapped while the sample was seen, by all events up to window.end. Frames in anonymous memory,
  // those at places that changed meanwhile and those of unknown processes stay as they are; a
  // return address that was in no executable mapping ends its stack (StackEnd::kBadReturnAddress).
  // The leaf stays, except in the middle of an exec, where the user registers are still those of
  // the old program (kNoUserStack). Processes that share a stack but not its meaning get stacks of
  // their own, and so does each that sees user addresses in it (Stack::process).
  // Opens again what the window needs of files that are not held any more, if a process still maps
  // them; a file that cannot be reached is tried once a minute. Forgets what is older than
  // window.end less two windows, and closes what no later window can ask for.
  // REQUIRES: windows in order.
  virtual ResolvedWindow Resolve(Window window) = 0;

  // What program `exec` of `process` had mapped executable at `when`, by all events up to then. A
  // process that lives and is unknown is read from /proc. Nothing if it cannot be known any more.
  // Cheap: copies, and reads events only if `when` is later than what has been read.
  virtual std::optional<ProgramMappings> MappingsAt(const ProcessKey& process, ExecId exec,
                                                    MonotonicTime when) = 0;

  // The kernel side found that `process` has other executable memory than was published: applies
  // all events up to now, reads its /proc/PID/maps and publishes it again. Reads 20 times at once
  // and then once a second for each process; refused beyond that, and counted. Nothing happens if
  // the process is unknown or gone, or if its pid is another's by now.
  virtual void Recheck(const ProcessKey& process) = 0;

  // Nothing if there is no such object.
  virtual std::optional<ObjectInfo> Object(ObjectId id) const = 0;

  // The object's file, for pread only (the offset is shared). Errors: kNotFound if it was never
  // opened, is the vDSO, or is gone by now.
  virtual Result<UniqueFd> OpenObject(ObjectId id) = 0;

  // The root directory of a living process that has the object mapped, for OpenInRoot only: where
  // what belongs to the object may lie. Errors: kNotFound, kPermission.
  virtual Result<UniqueFd> OpenRootOf(ObjectId id) = 0;

  virtual ProcessCounters counters() const = 0;
};

}  // namespace pyrometer
