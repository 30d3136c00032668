// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// What the samples with each of these label sets, which are not null, are to have instead; null:
// they are dropped; nothing: that is not known yet. All are asked about at once, so that one answer
// can hold for several.
using Relabel = std::function<std::vector<std::optional<LabelSet>>(std::span<const LabelSet>)>;

struct LabelSplit {
  std::vector<Profile> ready;      // one for each label set, in order of first appearance
  std::optional<Profile> waiting;  // the samples whose labels are not known yet, as they came
  uint64_t dropped = 0;            // ticks of samples that are dropped
};

// Makes one profile of each label set of `profile`, whose samples have label sets, after `relabel`;
// empty: as they are. Where Profile::labels and a label set have a label of the same name, that of
// the profile wins. Each part has the facts and the accounting of the whole, and the locations that
// it needs.
LabelSplit SplitByLabels(Profile profile, const Relabel& relabel = {});

}  // namespace pyrometer
