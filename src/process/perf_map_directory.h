// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
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
  static Result<PerfMapDirectory> Of(const ProcessDirectory& directory);

  // True if both lead to the same file, now and later.
  bool IsSame(const PerfMapDirectory& other) const;

  // /tmp/perf-PID.map in the process's root. Errors: kNotFound; kPermission if it belongs to
  // neither the process's user nor root; kInvalid if it is not a regular file.
  Result<UniqueFd> Open() const;

 private:
  PerfMapDirectory(UniqueFd tmp, const ProcStatus& status);

  UniqueFd tmp_;
  Pid namespace_pid_;
  uint32_t owner_;
};

}  // namespace pyrometer
