// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/relabel_rule.h"
#include "pyrometer/labels.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What rules make of a set of labels.
struct Relabeled {
  Labels labels;                     // without those that begin with "__"; of a dropped set none
  std::optional<size_t> dropped_by;  // the index of the rule that dropped it; nothing: it is kept
};

// What one rule did, for people.
struct RelabelStep {
  struct Change {
    std::string name;
    std::optional<std::string> before;  // nothing: the rule added it
    std::optional<std::string> after;   // nothing: the rule removed it
  };
  std::string sources;  // the values of the source labels, joined
  std::vector<Change> changes;
  bool drops = false;  // no later rule is asked
};

// Prometheus' relabel_configs: rules that change labels, or drop their bearer, one after the other.
// Regular expressions are AnchoredRegex. Other than there, so that foreign values cannot take all
// memory, a value has at most kLongestValue bytes (it is cut) and a set at most kMostLabels labels,
// and kMostPrivateLabels that begin with "__" (more are not added); values stay printable (see
// base/printable.h); lowercase and uppercase change the letters of ASCII. Immutable; any thread.
class Relabeling {
 public:
  static constexpr size_t kLongestValue = 4096;
  static constexpr size_t kMostLabels = 128;
  static constexpr size_t kMostPrivateLabels = 1024;

  // Without rules: removes labels that begin with "__".
  Relabeling();

  // Errors: kInvalid, which names the rule by its index, and its field; see FindMistake().
  static Result<Relabeling> Compile(std::span<const RelabelRule> rules);

  bool empty() const;

  // `labels` are sorted by name, each name once; an empty value counts as no label.
  Relabeled Apply(const Labels& labels) const;
  // One step for each rule, up to one that drops.
  std::vector<RelabelStep> Explain(const Labels& labels) const;

  // True if what the rules do may depend on the value of this label.
  bool Reads(std::string_view name) const;

  // True if what the rule with this index decides about a set of labels (keep or drop) depends
  // neither on the labels `others`, present or not, nor on anything that earlier rules made of
  // them: sets that differ only in `others` are dropped by this rule, or by an earlier one, alike.
  bool DecidesWithout(size_t rule, std::span<const std::string_view> others) const;

 private:
  struct Rule;

  std::shared_ptr<const std::vector<Rule>> rules_;  // never null
};

}  // namespace pyrometer
