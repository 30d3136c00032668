// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

namespace pyrometer {

// Takes fields off the front of a line that are parted by one delimiter each.
class TextFields {
 public:
  explicit TextFields(std::string_view line) : rest_(line) {}

  std::string_view Next(char delimiter = ' ') {
    const size_t end = std::min(rest_.find(delimiter), rest_.size());
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return field;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// True if `text` is a number and nothing else.
template <typename T>
bool ParseNumber(std::string_view text, T& value, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && next == end;
}

}  // namespace pyrometer
