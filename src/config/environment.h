// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// The value of the environment variable of this name; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// This process's own.
Environment ProcessEnvironment();

struct Expanded {
  std::string text;
  bool used_environment = false;  // some of it comes from there
};

// `text` with each ${NAME} (a name is [a-zA-Z_][a-zA-Z0-9_]*) replaced by its value, which is not
// expanded again, and each $$ by $. A group of a regular expression's replacement, ${1}, stays, and
// so does any other dollar. Errors: kInvalid for a name that is not set and for ${ without one. The
// messages tell no values.
Result<Expanded> ExpandEnvironment(std::string_view text, const Environment& environment);

}  // namespace pyrometer
