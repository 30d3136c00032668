// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "config/record_config.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct ShowHelp {
  std::string text;
};
struct ShowVersion {};
struct Examination {
  bool json = false;
};

// What the user asked for.
using ParsedCommand = std::variant<ShowHelp, ShowVersion, Examination, RecordConfig>;

// argv[0] is the program's name. Errors: kInvalid, with a message of one line.
Result<ParsedCommand> ParseCommandLine(int argc, const char* const* argv);

}  // namespace pyrometer
