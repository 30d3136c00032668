// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "pyrometer/sink.h"

namespace pyrometer {

// The receipt of a parcel of which the destination has surely seen nothing. `reason` is a word for
// counters.
inline Receipt NotArrived(const char* reason, std::string message) {
  return {.outcome = Outcome::kNotArrived, .reason = reason, .message = std::move(message)};
}

}  // namespace pyrometer
