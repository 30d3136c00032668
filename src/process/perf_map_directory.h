// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/foreign_files.h"
#include "base/unique_fd.h"
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
  // Waits no longer for the file system than `inspections` does. Errors: kExhausted if that is not
  // long enough.
  static Result<PerfMapDirectory> Of(const ProcessDirectory& directory,
                                     FileInspections& inspections);

  // True if both lead to the same file, now and later.
  bool IsSame(const PerfMapDirectory& other) const;

  // /tmp/perf-PID.map in the process's root, or a copy of it; takes some seconds at most. Errors:
  // kNotFound; kPermission if it belongs to neither the process's user nor root; kInvalid if it is
  // not a regular file; kExhausted if its file system does not answer.
  Result<UniqueFd> Open() const;

 private:
  PerfMapDirectory(PathFd tmp, const ProcStatus& status, std::shared_ptr<ForeignFiles> files);

  PathFd tmp_;
  Pid namespace_pid_;
  uint32_t owner_;
  std::shared_ptr<ForeignFiles> files_;
};

}  // namespace pyrometer
