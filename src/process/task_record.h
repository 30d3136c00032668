// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/ids.h"

namespace pyrometer {

// What /proc does not show of a task; from a task iterator in the kernel.
struct TaskRecord {
  Pid pid;
  Tid tid;
  StartTime start;  // of the thread group leader
  ExecId exec;
  MonotonicTime read_at;
};

}  // namespace pyrometer
