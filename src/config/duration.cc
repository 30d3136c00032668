// SPDX-License-Identifier: Apache-2.0
#include "config/duration.h"

#include <absl/strings/ascii.h>
#include <absl/time/time.h>

#include <charconv>
#include <optional>

namespace pyrometer {
namespace {

// What follows may also be a sign, "inf" or "nan" to absl and from_chars; not here.
bool StartsWithNumber(std::string_view text) {
  return !text.empty() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.');
}

std::optional<absl::Duration> WithAbslUnits(std::string_view text) {
  absl::Duration duration;
  if (!StartsWithNumber(text) ||
      !absl::ParseDuration(absl::string_view(text.data(), text.size()), &duration)) {
    return std::nullopt;
  }
  return duration;
}

// absl knows no days, whose length depends on the clock; here they have 24 hours, and come first.
std::optional<absl::Duration> WithDays(std::string_view text) {
  const size_t unit = text.find('d');
  if (unit == std::string_view::npos) return WithAbslUnits(text);
  if (!StartsWithNumber(text)) return std::nullopt;
  double days = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + unit, days, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + unit) return std::nullopt;
  const absl::Duration duration = absl::Hours(24) * days;
  if (unit + 1 == text.size()) return duration;
  const std::optional<absl::Duration> rest = WithAbslUnits(text.substr(unit + 1));
  if (!rest) return std::nullopt;
  return duration + *rest;
}

}  // namespace

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  const std::optional<absl::Duration> duration = WithDays(text);
  if (!duration) {
    return Fail(ErrorCode::kInvalid, "'{}' is not a duration; write it like 10s, 1m30s or 500ms",
                text);
  }
  if (*duration > absl::FromChrono(kLongestDuration)) {
    return Fail(ErrorCode::kInvalid, "a duration of {} is too long; the longest is {}", text,
                FormatDuration(kLongestDuration));
  }
  const std::chrono::nanoseconds nanoseconds = absl::ToChronoNanoseconds(*duration);
  if (nanoseconds.count() <= 0) {
    return Fail(ErrorCode::kInvalid, "a duration of {} is too short", text);
  }
  return nanoseconds;
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  return absl::FormatDuration(absl::FromChrono(duration));
}

}  // namespace pyrometer
