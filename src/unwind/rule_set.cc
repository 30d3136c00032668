// SPDX-License-Identifier: Apache-2.0
#include "unwind/rule_set.h"

#include <absl/hash/hash.h>

#include <bit>
#include <utility>

namespace pyrometer {
namespace {

size_t HashOf(const RegisterRule& rule) {
  return absl::HashOf(rule.kind, rule.reg, rule.offset, rule.expression);
}

}  // namespace

RuleSet::RuleSet() {
  rules_.push_back({});  // all zero, as `recent_` is
  numbers_.emplace(UnwindRuleBits(), uint16_t{0});
}

size_t RuleSet::SlotOf(const UnwindRuleBits& bits) {
  static_assert(std::has_single_bit(kRecent));
  // Fibonacci hashing: the best bits of the product are the upper ones.
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  constexpr unsigned kShift = 64 - std::bit_width(kRecent - 1);
  return ((bits.low * kFactor) ^ (bits.high * std::rotl(kFactor, 32))) >> kShift;
}

std::optional<uint16_t> RuleSet::Intern(const pyro_unwind_rule& rule) {
  const auto bits = UnwindRuleBits::Of(rule);
  const Recent& recent = recent_[SlotOf(bits)];
  return recent.bits == bits ? recent.number : InternSlowly(rule, bits);
}

std::optional<uint16_t> RuleSet::InternSlowly(const pyro_unwind_rule& rule,
                                              const UnwindRuleBits& bits) {
  auto found = numbers_.find(bits);
  if (found == numbers_.end()) {
    if (rules_.size() == UnwindTable::kMostRules) return std::nullopt;
    found = numbers_.emplace(bits, static_cast<uint16_t>(rules_.size())).first;
    rules_.push_back(rule);
  }
  recent_[SlotOf(bits)] = {.bits = bits, .number = found->second};
  return found->second;
}

std::optional<uint16_t> RuleSet::InternExotic(const ExoticRule& rule) {
  auto found = exotic_numbers_.find(rule);
  if (found == exotic_numbers_.end()) {
    if (rules_.size() == UnwindTable::kMostRules) return std::nullopt;
    found = exotic_numbers_.emplace(rule, static_cast<uint16_t>(exotic_.size())).first;
    exotic_.push_back(rule);
  }
  pyro_unwind_rule reference{};
  reference.kind = PYRO_RULE_EXOTIC;
  reference.cfa_offset = found->second;
  return Intern(reference);
}

void RuleSet::Finish(UnwindTable& table) && {
  rules_.shrink_to_fit();
  table.rules = std::move(rules_);
  table.exotic = std::move(exotic_);
}

size_t RuleSet::ExoticHash::operator()(const ExoticRule& rule) const {
  size_t hash = absl::HashOf(HashOf(rule.cfa), rule.return_address, rule.signal_frame);
  for (const ExoticRule::OfRegister& of : rule.registers) {
    hash = absl::HashOf(hash, of.reg, HashOf(of.rule));
  }
  return hash;
}

}  // namespace pyrometer
