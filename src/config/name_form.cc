// SPDX-License-Identifier: Apache-2.0
#include "config/name_form.h"

namespace pyrometer {

std::span<const std::pair<std::string_view, NameForm>> NameForms() {
  static constexpr std::pair<std::string_view, NameForm> kForms[] = {
      {"simple", NameForm::kSimple}, {"full", NameForm::kFull}, {"none", NameForm::kRaw}};
  return kForms;
}

Result<NameForm> ParseNameForm(std::string_view text) {
  for (const auto& [word, form] : NameForms()) {
    if (text == word) return form;
  }
  return Fail(ErrorCode::kInvalid, "'{}' is not a form of names; choose full, simple or none",
              text);
}

}  // namespace pyrometer
