// SPDX-License-Identifier: Apache-2.0
#include "config/container_id.h"

#include <absl/strings/ascii.h>

#include <algorithm>

namespace pyrometer {
namespace {

constexpr size_t kLongestContainerId = 64;
constexpr size_t kEcsTaskDigits = 32;
constexpr size_t kLongestName = 253;

bool IsLowerHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsEcsId(std::string_view text) {
  return text.size() > kEcsTaskDigits + 1 && text[kEcsTaskDigits] == '-' &&
         IsLowerHex(text.substr(0, kEcsTaskDigits)) &&
         std::ranges::all_of(text.substr(kEcsTaskDigits + 1), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

}  // namespace

Result<std::string> ParseContainerId(std::string_view text) {
  std::string_view id = text;
  if (const size_t scheme = id.find("://"); scheme != std::string_view::npos) {
    id.remove_prefix(scheme + 3);
  }
  const bool is_hex =
      id.size() >= kShortestContainerId && id.size() <= kLongestContainerId && IsLowerHex(id);
  if (!is_hex && !IsEcsId(id)) {
    return Fail(ErrorCode::kInvalid,
                "'{}' is no container's id or name; give the {} hex digits of its id, at least "
                "the first {} of them, or its name",
                text, kLongestContainerId, kShortestContainerId);
  }
  return std::string(id);
}

bool IsContainerName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace pyrometer
