// SPDX-License-Identifier: Apache-2.0
#include "config/frequency.h"

#include <absl/strings/numbers.h>

namespace pyrometer {

Result<Hertz> ParseFrequency(std::string_view text) {
  uint32_t value = 0;
  const bool is_number = absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value);
  if (!is_number || value < 1 || value > kHighestFrequency.value) {
    return Fail(ErrorCode::kInvalid,
                "'{}' is not a valid frequency; give 1 to {} samples per second", text,
                kHighestFrequency.value);
  }
  return Hertz{value};
}

}  // namespace pyrometer
