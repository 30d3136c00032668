// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "config/agent_options.h"
#include "config/record_config.h"
#include "doctor/doctor.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What the command line starts; main.cc passes the real functions.
struct Commands {
  std::function<Result<int>(const RecordConfig&)> record;
  std::function<Result<int>(const AgentOptions&)> agent;
  std::function<Result<std::string>(const AgentOptions&, Pid)> explain;  // returns what to print
  std::function<DoctorReport()> examine;
};

// Where to print. File descriptors, so that failed writes are noticed.
struct Streams {
  int out = 1;
  int error = 2;
  bool out_is_terminal = false;
  bool colour = false;
};

// Carries out argv and returns the program's exit status. Prints an error as one line on
// streams.error.
int Run(int argc, const char* const* argv, const Commands& commands, const Streams& streams);

}  // namespace pyrometer
