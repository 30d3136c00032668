// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "process/object_info.h"
#include "process/process_counters.h"
#include "process/program_mappings.h"
#include "process/resolved_window.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// What the rest of the engine asks about processes. ProcessTracker answers for this machine,
// ProcessHistory for a recorded one; each says whether threads may share it.
class ProcessKnowledge {
 public:
  virtual ~ProcessKnowledge() = default;

  // Turns a user address into an object frame if the sample's process had the same file mapped
  // there as long as the sample was seen, according to all events up to window.end. Frames in
  // anonymous memory, at places that changed meanwhile and of unknown processes stay addresses. A
  // return address in no executable mapping ends its stack (StackEnd::kBadReturnAddress). The leaf
  // stays, except in the middle of an exec, when the user registers are still the old program's
  // (kNoUserStack). Processes that share a stack which means something different in each get stacks
  // of their own, and so does each process with user addresses in it (Stack::process).
  // Opens files that the window needs and that are no longer held, if a process still maps them; a
  // file that cannot be reached is tried once a minute. Forgets what is older than window.end minus
  // two windows, and closes what no later window can need.
  // REQUIRES: windows in order.
  virtual ResolvedWindow Resolve(Window window) = 0;

  // What program `exec` of `process` had mapped executable at `when`, according to all events up to
  // then. An unknown living process is read from /proc. Nothing if it can no longer be known.
  // Cheap: it copies, and reads events only if `when` is later than those already read.
  virtual std::optional<ProgramMappings> MappingsAt(const ProcessKey& process, ExecId exec,
                                                    MonotonicTime when) = 0;

  // To be called when the kernel side found that `process` has other executable memory than was
  // published. Applies all events up to now, reads its /proc/PID/maps and publishes it again.
  // Allows each process a burst of 20, then one a second, and all of a user a burst of 500, then
  // 100 a second; more are refused and counted. Does nothing if the process is unknown or gone, or
  // its pid belongs to another by now.
  virtual void Recheck(const ProcessKey& process) = 0;

  // Nothing if there is no such object.
  virtual std::optional<ObjectInfo> Object(ObjectId id) const = 0;

  // The object's file, for pread only (the offset is shared). Errors: kNotFound if it was never
  // opened, is the vDSO, or is gone.
  virtual Result<UniqueFd> OpenObject(ObjectId id) = 0;

  // Objects with a file that samples were in for the first time since they are mapped, as far as
  // the kernel side knows; some others with them. What is read of one now does not depend on
  // whether its file is still held, and what it was, when the window is named.
  virtual std::vector<SampledObject> TakeSampled() = 0;

  // The root directory of a living process that has the object mapped, for FindInRoot only: files
  // that belong to the object may lie there. Errors: kNotFound, kPermission.
  virtual Result<UniqueFd> OpenRootOf(ObjectId id) = 0;

  // Has the observer see every living process again, as if for the first time, when the next window
  // with samples of it is resolved, or when it changes: what it captures of a process has changed.
  virtual void ShowAgain() = 0;

  // Gives a process the labels `by` in the place of `of`, which ProcessObserver::OnProcess()
  // returned, for windows resolved from now on: some of what they say becomes known late. Does
  // nothing if it has others by now, or is already forgotten.
  virtual void ReplaceLabels(const ProcessKey& process, const LabelSet& of, LabelSet by) = 0;

  virtual ProcessCounters counters() const = 0;
};

}  // namespace pyrometer
