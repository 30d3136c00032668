// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "config/record_config.h"
#include "doctor/doctor.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What the command line starts. main.cc passes the real ones.
struct Commands {
  std::function<Result<int>(const RecordConfig&)> record;
  std::function<DoctorReport()> examine;
};

// Where it prints. File descriptors, so that a failed write is seen.
struct Streams {
  int out = 1;
  int error = 2;
  bool out_is_terminal = false;
  bool colour = false;
};

// Does what argv says and returns the exit status of the program. Errors are printed as one line
// on streams.error.
int Run(int argc, const char* const* argv, const Commands& commands, const Streams& streams);

}  // namespace pyrometer
