// SPDX-License-Identifier: Apache-2.0
#include "config/label.h"

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr std::array<std::string_view, 3> kReserved = {"pid", "comm", "thread"};

}  // namespace

Result<void> CheckLabel(std::string_view name, std::string_view value) {
  if (!IsIdentifier(name)) {
    return Fail(ErrorCode::kInvalid,
                "label name '{}' may only have letters, digits and '_', with no digit first", name);
  }
  if (std::ranges::find(kReserved, name) != kReserved.end()) {
    return Fail(ErrorCode::kInvalid, "label name '{}' is reserved: every sample carries its own {}",
                name, name);
  }
  if (value.empty()) return Fail(ErrorCode::kInvalid, "label '{}' has no value", name);
  if (!IsPrintable(value)) {
    return Fail(ErrorCode::kInvalid, "the value of label '{}' is not printable UTF-8 text", name);
  }
  return {};
}

Result<Label> ParseLabel(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Fail(ErrorCode::kInvalid, "label '{}' has no '='; write it like service=checkout", text);
  }
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  RETURN_IF_ERROR(CheckLabel(name, value));
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
