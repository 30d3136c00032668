// SPDX-License-Identifier: Apache-2.0
// Rules and labels as tests write and read them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "metadata/relabel.h"
#include "pyrometer/labels.h"

namespace pyrometer {

inline RelabelRule Drop(std::string label, std::string regex) {
  return {.action = RelabelAction::kDrop,
          .source_labels = {std::move(label)},
          .regex = std::move(regex)};
}

// "a=1 b=2"
inline std::string Text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

// Of samples; null: they are dropped.
inline std::string Text(const LabelSet& labels) {
  return labels == nullptr ? "dropped" : Text(*labels);
}

}  // namespace pyrometer
