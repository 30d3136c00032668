// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "pyrometer/abi/unwind.h"
#include "pyrometer/unwind_rule_bits.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// The distinct rules of a table, numbered. Rule 0 is PYRO_RULE_NONE.
class RuleSet {
 public:
  RuleSet();

  // The number of `rule`; nothing beyond UnwindTable::kMostRules.
  std::optional<uint16_t> Intern(const pyro_unwind_rule& rule);
  std::optional<uint16_t> InternExotic(const ExoticRule& rule);

  // Fills in the rules.
  void Finish(UnwindTable& table) &&;

 private:
  struct Recent {
    UnwindRuleBits bits;
    uint16_t number = 0;
  };
  struct ExoticHash {
    size_t operator()(const ExoticRule& rule) const;
  };

  // Nearly every row has a rule that was used a moment ago.
  static constexpr size_t kRecent = 512;
  static size_t SlotOf(const UnwindRuleBits& bits);
  std::optional<uint16_t> InternSlowly(const pyro_unwind_rule& rule, const UnwindRuleBits& bits);

  std::array<Recent, kRecent> recent_{};
  std::vector<pyro_unwind_rule> rules_;
  absl::flat_hash_map<UnwindRuleBits, uint16_t> numbers_;
  std::vector<ExoticRule> exotic_;
  absl::flat_hash_map<ExoticRule, uint16_t, ExoticHash> exotic_numbers_;
};

}  // namespace pyrometer
