// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/unique_fd.h"
#include "foreign/foreign_files.h"
#include "process/file_inspections.h"
#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where a process's JIT compiler writes the names of its functions. Opened while the process lives,
// it still works afterwards: it holds /tmp itself and not the root, because mounts of a mount
// namespace vanish from the root when its last process exits. Immutable: any number of threads may
// use it.
class PerfMapDirectory {
 public:
  // Of a process that began at `start`. Waits no longer for the file system than `inspections`
  // does. Errors: kExhausted if that is not long enough.
  static Result<PerfMapDirectory> Of(const ProcessDirectory& directory, StartTime start,
                                     FileInspections& inspections);

  // True if both lead to the same file, now and later.
  bool IsSame(const PerfMapDirectory& other) const;

  // /tmp/perf-PID.map in the process's root, or a copy of it; takes some seconds at most. Errors:
  // kNotFound, also of one that has not changed since before the process began: another process's,
  // which had the same pid (or an own one, if the wall clock was set forward before this was made
  // and nothing was written since); kPermission if it belongs to neither the process's user nor
  // root; kInvalid if it is not a regular file; kExhausted if its file system does not answer.
  Result<UniqueFd> Open() const;

 private:
  PerfMapDirectory(PathFd tmp, const ProcStatus& status, StartTime start,
                   std::shared_ptr<ForeignFiles> files);

  PathFd tmp_;
  StartTime start_;
  std::chrono::system_clock::time_point began_;  // by the wall clock as it was set at first
  Pid namespace_pid_;
  uint32_t owner_;
  std::shared_ptr<ForeignFiles> files_;
};

}  // namespace pyrometer
