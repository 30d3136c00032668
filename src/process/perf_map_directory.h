// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where a process's JIT compiler writes the names of its functions. It is taken while the process
// lives and still works afterwards.
class PerfMapDirectory {
 public:
  static Result<PerfMapDirectory> Of(const ProcessDirectory& directory);

  // /tmp/perf-PID.map in the process's root. Errors: kNotFound; kPermission if it belongs to
  // neither the process's user nor root; kInvalid if it is no regular file.
  Result<UniqueFd> Open() const;

 private:
  PerfMapDirectory(UniqueFd root, const ProcStatus& status);

  UniqueFd root_;  // O_PATH
  Pid namespace_pid_;
  uint32_t owner_;
};

}  // namespace pyrometer
