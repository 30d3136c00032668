// SPDX-License-Identifier: Apache-2.0
// The text formats of proc(5), as far as they matter here. What a process can choose (its name,
// its paths) is hostile and cannot make one field pass for another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Of /proc/PID/stat.
struct ProcStat {
  std::string comm;
  char state = '?';
  bool kernel_thread = false;
  StartTime start;
  Address code;  // where the executable's code begins; 0 or 1 if we may not know
};
// Errors: kMalformed.
Result<ProcStat> ParseProcStat(std::string_view stat);

// Of /proc/PID/status.
struct ProcStatus {
  Pid namespace_pid;   // the pid in the innermost pid namespace
  uint32_t user = 0;   // real user id
  uint32_t owner = 0;  // user id that files it creates belong to
};
// Errors: kMalformed.
Result<ProcStatus> ParseProcStatus(std::string_view status);

}  // namespace pyrometer
