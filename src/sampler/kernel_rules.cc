// SPDX-License-Identifier: Apache-2.0
#include "sampler/kernel_rules.h"

#include <optional>

#include "sampler/quarantine.h"

namespace pyrometer {

KernelRules::KernelRules(std::span<pyro_unwind_rule> rules)
    : rules_(rules), references_(rules.size()) {
  rules_[PYRO_RULE_INDEX_NONE].kind = PYRO_RULE_NONE;
  rules_[PYRO_RULE_INDEX_EXOTIC].kind = PYRO_RULE_EXOTIC;
  next_ = PYRO_RULE_INDEX_EXOTIC + 1;
}

std::vector<uint16_t> KernelRules::Acquire(std::span<const pyro_unwind_rule> rules,
                                           MonotonicTime now) {
  std::vector<uint16_t> indices;
  indices.reserve(rules.size());
  for (const pyro_unwind_rule& rule : rules) indices.push_back(AcquireOne(rule, now));
  return indices;
}

uint16_t KernelRules::AcquireOne(const pyro_unwind_rule& rule, MonotonicTime now) {
  if (rule.kind == PYRO_RULE_NONE) return PYRO_RULE_INDEX_NONE;
  if (rule.kind == PYRO_RULE_EXOTIC) return PYRO_RULE_INDEX_EXOTIC;
  const auto bits = UnwindRuleBits::Of(rule);
  if (const auto known = index_of_.find(bits); known != index_of_.end()) {
    ++references_[known->second];
    return known->second;
  }
  std::optional<uint16_t> index;
  if (!retired_.empty() && IsOver(kReaderQuarantine, retired_.front().when, now)) {
    index = retired_.front().index;
    retired_.pop_front();
  } else if (next_ < rules_.size()) {
    index = static_cast<uint16_t>(next_++);
  }
  if (!index) {
    ++refused_;
    return PYRO_RULE_INDEX_EXOTIC;
  }
  rules_[*index] = rule;
  references_[*index] = 1;
  index_of_.emplace(bits, *index);
  return *index;
}

void KernelRules::Release(std::span<const uint16_t> indices, MonotonicTime now) {
  for (const uint16_t index : indices) {
    if (index <= PYRO_RULE_INDEX_EXOTIC || --references_[index] > 0) continue;
    index_of_.erase(UnwindRuleBits::Of(rules_[index]));
    retired_.push_back({.when = now, .index = index});
  }
}

}  // namespace pyrometer
