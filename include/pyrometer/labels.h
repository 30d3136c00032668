// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pyrometer {

// Names and values for finding profiles: sorted by name, each name once.
using Labels = std::vector<std::pair<std::string, std::string>>;

// The labels of a process, shared by all its samples. Null: none.
using LabelSet = std::shared_ptr<const Labels>;

// True if both have the same labels, whether or not they are the same object.
inline bool SameLabels(const LabelSet& a, const LabelSet& b) {
  if (a == b) return true;
  static const Labels kNone;
  return (a ? *a : kNone) == (b ? *b : kNone);
}

}  // namespace pyrometer
