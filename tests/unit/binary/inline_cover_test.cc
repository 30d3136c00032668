// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf/inline_cover.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyrometer {
namespace {

using Lines = std::vector<DwarfLineTable::Row>;

std::string Rows(uint64_t begin, uint64_t end, std::vector<DwarfInlinedRange> calls,
                 const Lines& lines) {
  std::string text;
  for (const DwarfRow& row : RowsOf(begin, end, calls, lines)) {
    text += fmt::format("{}-{}", row.begin.value(), row.end.value());
    if (row.inlined) text += fmt::format(" in {}", *row.inlined);
    if (row.place.file) text += fmt::format(" {}:{}", *row.place.file, row.place.line);
    text += "; ";
  }
  return text;
}

constexpr DwarfLineTable::Row kGap{.address = 200};

TEST(InlineCover, HasTheInnermostCall) {
  const Lines lines = {{100, 1, 5}, {110, 2, 7}, kGap};
  EXPECT_EQ(Rows(100, 130, {}, lines), "100-110 1:5; 110-130 2:7; ");
  EXPECT_EQ(Rows(100, 130, {{105, 120, 0}, {107, 112, 1}}, lines),
            "100-105 1:5; 105-107 in 0 1:5; 107-110 in 1 1:5; 110-112 in 1 2:7; 112-120 in 0 2:7; "
            "120-130 2:7; ");
}

TEST(InlineCover, TakesTheLaterOfCallsThatOverlap) {
  const Lines lines = {{0, 1, 5}, kGap};
  EXPECT_EQ(Rows(0, 50, {{10, 30, 0}, {20, 40, 1}}, lines),
            "0-10 1:5; 10-20 in 0 1:5; 20-40 in 1 1:5; 40-50 1:5; ");
  EXPECT_EQ(Rows(0, 50, {{10, 30, 1}, {20, 40, 0}}, lines),
            "0-10 1:5; 10-30 in 1 1:5; 30-40 in 0 1:5; 40-50 1:5; ");
  EXPECT_EQ(Rows(0, 50, {{0, 50, 0}, {0, 50, 1}}, lines), "0-50 in 1 1:5; ");
}

TEST(InlineCover, StaysWithinItsRange) {
  const Lines lines = {{0, 1, 5}, {300, 1, 6}};
  EXPECT_EQ(Rows(100, 150, {{50, 110, 0}, {140, 900, 1}}, lines),
            "100-110 in 0 1:5; 110-140 1:5; 140-150 in 1 1:5; ");
}

TEST(InlineCover, KnowsNothingWhereThereIsNoLine) {
  EXPECT_EQ(Rows(100, 150, {}, {}), "100-150; ");
  EXPECT_EQ(Rows(100, 250, {{120, 130, 0}}, {{110, 1, 5}, kGap}),
            "100-110; 110-120 1:5; 120-130 in 0 1:5; 130-200 1:5; 200-250; ");
}

}  // namespace
}  // namespace pyrometer
