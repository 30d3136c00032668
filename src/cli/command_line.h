// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "config/agent_options.h"
#include "config/record_config.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct ShowHelp {
  std::string text;
};
struct ShowVersion {};
struct Examination {
  bool json = false;
};

// `agent --check-config`.
struct ConfigCheck {
  AgentOptions options;
};

// `agent --explain PID`.
struct Explanation {
  AgentOptions options;
  Pid pid;
};

// What the user asked for. The agent reads its options itself, and again at each SIGHUP.
using ParsedCommand = std::variant<ShowHelp, ShowVersion, Examination, RecordConfig, AgentOptions,
                                   ConfigCheck, Explanation>;

// argv[0] is the program's name. Errors: kInvalid, with a message of one line.
Result<ParsedCommand> ParseCommandLine(int argc, const char* const* argv);

}  // namespace pyrometer
