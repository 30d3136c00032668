// SPDX-License-Identifier: Apache-2.0
#include "config/label.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace pyrometer {
namespace {

constexpr std::array<std::string_view, 3> kReserved = {"pid", "comm", "thread"};

bool IsName(std::string_view name) {
  const auto is_word = [](char c) {
    return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, is_word);
}

// The length of the UTF-8 sequence that begins `text`, or 0 if it is not one (RFC 3629: no overlong
// forms, no surrogates, nothing above U+10FFFF).
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const uint32_t lead = static_cast<uint32_t>(byte(0)) << 8 | byte(1);
  const bool overlong = (lead >= 0xe000 && lead < 0xe0a0) || (lead >= 0xf000 && lead < 0xf090);
  const bool surrogate = lead >= 0xeda0 && lead < 0xee00;
  const bool too_large = lead >= 0xf490;
  return overlong || surrogate || too_large ? 0 : length;
}

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(text[0]))) return false;
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

Result<Label> ParseLabel(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Fail(ErrorCode::kInvalid, "label '{}' has no '='; write it like service=checkout", text);
  }
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  if (!IsName(name)) {
    return Fail(ErrorCode::kInvalid,
                "label name '{}' may only have letters, digits and '_', and no digit first", name);
  }
  if (std::ranges::find(kReserved, name) != kReserved.end()) {
    return Fail(ErrorCode::kInvalid, "label name '{}' is taken: every sample carries its own {}",
                name, name);
  }
  if (value.empty()) return Fail(ErrorCode::kInvalid, "label '{}' has no value", name);
  if (!IsPrintable(value)) {
    return Fail(ErrorCode::kInvalid, "the value of label '{}' is not printable UTF-8 text", name);
  }
  return Label(name, value);
}

Result<std::vector<Label>> ParseLabels(std::span<const std::string> texts) {
  std::vector<Label> labels;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(Label label, ParseLabel(text));
    if (std::ranges::find(labels, label.first, &Label::first) != labels.end()) {
      return Fail(ErrorCode::kInvalid, "label '{}' is given twice", label.first);
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace pyrometer
