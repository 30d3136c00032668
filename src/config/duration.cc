// SPDX-License-Identifier: Apache-2.0
#include "config/duration.h"

#include <absl/strings/ascii.h>
#include <absl/time/time.h>

namespace pyrometer {

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  absl::Duration duration;
  // absl also reads signs, "inf" and a bare "0", which are not durations here.
  const bool starts_with_number =
      !text.empty() && (absl::ascii_isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.');
  if (!starts_with_number ||
      !absl::ParseDuration(absl::string_view(text.data(), text.size()), &duration)) {
    return Fail(ErrorCode::kInvalid, "'{}' is not a duration; write it like 10s, 1m30s or 500ms",
                text);
  }
  if (duration > absl::FromChrono(kLongestDuration)) {
    return Fail(ErrorCode::kInvalid, "a duration of {} is too long; the longest is {}", text,
                FormatDuration(kLongestDuration));
  }
  const std::chrono::nanoseconds nanoseconds = absl::ToChronoNanoseconds(duration);
  if (nanoseconds.count() <= 0) {
    return Fail(ErrorCode::kInvalid, "a duration of {} is too short", text);
  }
  return nanoseconds;
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  return absl::FormatDuration(absl::FromChrono(duration));
}

}  // namespace pyrometer
