// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pyrometer/labels.h"

namespace pyrometer {

// Label sets, each of which is there once as long as somebody bears it, and at most so many.
class SharedLabels {
 public:
  // `other` stands for all those for which there is no room.
  SharedLabels(size_t most, LabelSet other) : most_(most), other_(std::move(other)) {}

  LabelSet Share(Labels labels);
  // Forgets sets that nobody bears any more.
  void Forget();
  bool IsFull() const { return known_.size() >= most_; }
  std::vector<LabelSet> Living() const;
  // How often a set was added or forgotten.
  uint64_t changes() const { return changes_; }

 private:
  const size_t most_;
  const LabelSet other_;
  std::map<Labels, std::weak_ptr<const Labels>> known_;
  uint64_t changes_ = 0;
};

}  // namespace pyrometer
