// SPDX-License-Identifier: Apache-2.0
#include "record/accounting_line.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

ProfileSample SampleOf(uint32_t pid, std::vector<uint32_t> stack, StackEnd end, uint64_t count) {
  return {.process = {Pid(pid), StartTime(1)},
          .comm = "a",
          .thread = "a",
          .stack = std::move(stack),
          .end = end,
          .count = count};
}

std::string LineOf(const Accounting& accounting) {
  Profile profile;
  profile.accounting = accounting;
  return AccountingLine(profile);
}

TEST(AccountingLine, NamesEveryOutcome) {
  Accounting accounting;
  accounting.exported = 5;
  accounting.idle = 4;
  accounting.filtered = 3;
  accounting.undelivered = 2;
  EXPECT_EQ(LineOf(accounting),
            "samples=5 idle=4 filtered=3 lost=0 undelivered=2 processes=0 stacks=0 truncated=0");
}

TEST(AccountingLine, SaysWhyTicksWereLost) {
  Accounting accounting;
  accounting.lost[Accounting::kStackMapFull] = 2;
  accounting.lost[Accounting::kNoMemory] = 1;
  EXPECT_EQ(LineOf(accounting),
            "samples=0 idle=0 filtered=0 lost=3 (stack_map_full=2 no_memory=1) undelivered=0 "
            "processes=0 stacks=0 truncated=0");
}

TEST(AccountingLine, CountsProcessesAndDifferentStacksAndCutSamples) {
  Profile profile;
  profile.samples = {
      SampleOf(1, {0, 1}, StackEnd::kComplete, 10), SampleOf(2, {0, 1}, StackEnd::kComplete, 10),
      SampleOf(2, {0, 1}, StackEnd::kTruncated, 3), SampleOf(2, {0}, StackEnd::kNoUnwindInfo, 4),
      SampleOf(3, {}, StackEnd::kNoUserStack, 5)};
  EXPECT_EQ(AccountingLine(profile),
            "samples=0 idle=0 filtered=0 lost=0 undelivered=0 processes=3 stacks=4 truncated=7 "
            "(truncated=3 no_unwind_information=4)");
}

}  // namespace
}  // namespace pyrometer
