// SPDX-License-Identifier: Apache-2.0
// Absl's string functions take absl::string_view, which on Debian 12 is not std::string_view.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace pyrometer {

// The pieces between the separators, empty ones included: n separators give n + 1 pieces.
inline std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

// `text` without white space (blanks, tabs, line ends) at both ends.
inline std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Letters, digits and '_', with no digit first: a name in most languages, Prometheus's labels and
// the environment of a process.
inline bool IsIdentifier(std::string_view text) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && !is_digit(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || is_digit(c); });
}

// The path of a file without the suffix that the kernel adds when it is unlinked (fs/d_path.c).
inline std::string_view WithoutDeleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

}  // namespace pyrometer
