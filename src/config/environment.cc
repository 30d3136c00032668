// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <cstdlib>

#include "base/printable.h"
#include "base/text.h"

namespace pyrometer {
namespace {

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

bool IsGroup(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<Expanded> ExpandEnvironment(std::string_view text, const Environment& environment) {
  Expanded expanded;
  while (true) {
    const size_t dollar = text.find('$');
    expanded.text += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return expanded;
    text.remove_prefix(dollar);
    if (text.starts_with("$$")) {
      expanded.text += '$';
      text.remove_prefix(2);
      continue;
    }
    if (!text.starts_with("${")) {
      expanded.text += '$';
      text.remove_prefix(1);
      continue;
    }
    const size_t brace = text.find('}');
    const std::string_view name = text.substr(2, brace == std::string_view::npos ? 0 : brace - 2);
    if (IsIdentifier(name)) {
      const std::optional<std::string> value = environment(std::string(name));
      if (!value) {
        return Fail(ErrorCode::kInvalid, "the environment variable {} is not set", name);
      }
      expanded.text += *value;
      expanded.used_environment = true;
    } else if (IsGroup(name)) {
      expanded.text += text.substr(0, brace + 1);
    } else {
      return Fail(ErrorCode::kInvalid,
                  "'{}' names no environment variable; write ${{NAME}}, or $$ for a dollar",
                  Printable(text.substr(0, brace == std::string_view::npos ? 2 : brace + 1), 60));
    }
    text.remove_prefix(brace + 1);
  }
}

}  // namespace pyrometer
