// SPDX-License-Identifier: Apache-2.0
#include "config/event.h"

#include <charconv>
#include <string>

namespace pyrometer {
namespace {

std::string Names() {
  std::string names;
  for (const EventFacts& event : kEvents) {
    if (!names.empty()) names += " or ";
    names += event.name;
  }
  return names;
}

}  // namespace

Result<EventKind> ParseEvent(std::string_view text) {
  if (const std::optional<EventKind> event = EventNamed(text)) return *event;
  return Fail(ErrorCode::kInvalid, "'{}' is not an event; choose {}", text, Names());
}

Result<uint64_t> ParseEventPeriod(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || value < 1 || value > kLongestEventPeriod) {
    return Fail(ErrorCode::kInvalid, "'{}' is not a period; give 1 to {} events a sample", text,
                kLongestEventPeriod);
  }
  return value;
}

}  // namespace pyrometer
