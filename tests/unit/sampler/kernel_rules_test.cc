// SPDX-License-Identifier: Apache-2.0
#include "sampler/kernel_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/unit/unwind/table_rules.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;

constexpr MonotonicTime kNow(5'000'000'000);
constexpr MonotonicTime kMuchLater(50'000'000'000);

class KernelRulesTest : public testing::Test {
 protected:
  std::array<pyro_unwind_rule, 5> memory_{};
  KernelRules rules_{memory_};
};

TEST_F(KernelRulesTest, HasTheFixedRulesFromTheBeginning) {
  EXPECT_EQ(memory_[PYRO_RULE_INDEX_NONE].kind, PYRO_RULE_NONE);
  EXPECT_EQ(memory_[PYRO_RULE_INDEX_EXOTIC].kind, PYRO_RULE_EXOTIC);
  std::vector<pyro_unwind_rule> fixed(2);
  fixed[0].kind = PYRO_RULE_NONE;
  fixed[1].kind = PYRO_RULE_EXOTIC;
  fixed[1].cfa_offset = 17;
  EXPECT_THAT(rules_.Acquire(fixed, kNow),
              ElementsAre(PYRO_RULE_INDEX_NONE, PYRO_RULE_INDEX_EXOTIC));
  EXPECT_EQ(rules_.size(), 0U);
}

TEST_F(KernelRulesTest, KeepsEachDistinctRuleOnce) {
  const std::vector<uint16_t> first =
      rules_.Acquire(std::vector{RuleWithOffset(8), RuleWithOffset(16)}, kNow);
  const std::vector<uint16_t> second = rules_.Acquire(std::vector{RuleWithOffset(16)}, kNow);
  EXPECT_EQ(second[0], first[1]);
  EXPECT_EQ(memory_[first[1]].cfa_offset, 16);
  EXPECT_EQ(rules_.size(), 2U);
}

TEST_F(KernelRulesTest, SendsWhatFindsNoPlaceToUserSpace) {
  const std::vector<uint16_t> indices = rules_.Acquire(
      std::vector{RuleWithOffset(8), RuleWithOffset(16), RuleWithOffset(24), RuleWithOffset(32)},
      kNow);
  EXPECT_THAT(indices, ElementsAre(2, 3, 4, PYRO_RULE_INDEX_EXOTIC));
  EXPECT_EQ(rules_.refused(), 1U);
}

TEST_F(KernelRulesTest, ReusesAPlaceOnlyWhenNoProgramCanBeReadingIt) {
  const std::vector<uint16_t> all =
      rules_.Acquire(std::vector{RuleWithOffset(8), RuleWithOffset(16), RuleWithOffset(24)}, kNow);
  rules_.Release(all, kNow);
  EXPECT_EQ(rules_.size(), 0U);
  EXPECT_THAT(rules_.Acquire(std::vector{RuleWithOffset(40)}, kNow),
              ElementsAre(PYRO_RULE_INDEX_EXOTIC));
  EXPECT_THAT(rules_.Acquire(std::vector{RuleWithOffset(40)}, kMuchLater), ElementsAre(all[0]));
}

TEST_F(KernelRulesTest, KeepsARuleUntilItsLastTableIsGone) {
  const std::vector<uint16_t> one = rules_.Acquire(std::vector{RuleWithOffset(8)}, kNow);
  const std::vector<uint16_t> two = rules_.Acquire(std::vector{RuleWithOffset(8)}, kNow);
  rules_.Release(one, kNow);
  EXPECT_EQ(rules_.size(), 1U);
  rules_.Release(two, kNow);
  EXPECT_EQ(rules_.size(), 0U);
}

}  // namespace
}  // namespace pyrometer
