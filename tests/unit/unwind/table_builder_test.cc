// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace pyrometer {
namespace {

constexpr uint64_t kPage = uint64_t{1} << PYRO_UNWIND_PAGE_SHIFT;

// Rule n has cfa_offset n, so that it can be told from others.
UnwindTable Finished(TableBuilder builder) {
  UnwindTable table;
  std::move(builder).Finish(table);
  for (int i = 0; i < 16; ++i) {
    table.rules.push_back({});
    table.rules.back().cfa_offset = i;
  }
  return table;
}

int RuleAt(const UnwindTable& table, uint64_t address) {
  return table.RuleAt(ElfAddress(address))->cfa_offset;
}

TEST(TableBuilder, MarksTheEndOfAFunction) {
  TableBuilder builder;
  builder.Cover(0x100, 0x110, 1);
  builder.Cover(0x200, 0x210, 2);
  const UnwindTable table = Finished(std::move(builder));
  EXPECT_EQ(RuleAt(table, 0xff), 0);
  EXPECT_EQ(RuleAt(table, 0x100), 1);
  EXPECT_EQ(RuleAt(table, 0x10f), 1);
  EXPECT_EQ(RuleAt(table, 0x110), 0);
  EXPECT_EQ(RuleAt(table, 0x1ff), 0);
  EXPECT_EQ(RuleAt(table, 0x200), 2);
  EXPECT_EQ(RuleAt(table, 0x210), 0);
  EXPECT_EQ(table.rows.size(), 5U);
}

TEST(TableBuilder, TakesPaddingForCode) {
  TableBuilder builder;
  builder.Cover(0x100, 0x101, 1);
  builder.Cover(0x110, 0x120, 1);  // behind 15 bytes
  builder.Cover(0x138, 0x140, 1);  // is not aligned
  builder.Cover(0x150, 0x160, 1);  // behind 16 bytes
  const UnwindTable table = Finished(std::move(builder));
  EXPECT_EQ(RuleAt(table, 0x101), 1);
  EXPECT_EQ(RuleAt(table, 0x137), 0);
  EXPECT_EQ(RuleAt(table, 0x14f), 0);
}

TEST(TableBuilder, HasNoRowsWithoutAChange) {
  TableBuilder builder;
  builder.Cover(0x100, 0x110, 1);
  builder.Cover(0x110, 0x120, 1);
  const UnwindTable table = Finished(std::move(builder));
  EXPECT_EQ(table.rows.size(), 3U);
}

TEST(TableBuilder, BeginsEveryPageAnew) {
  TableBuilder builder;
  builder.Cover(7 * kPage + 0x10, 9 * kPage + 0x10, 1);
  builder.Cover(12 * kPage, 13 * kPage, 2);
  const UnwindTable table = Finished(std::move(builder));
  EXPECT_EQ(table.first_page, 7U);
  ASSERT_EQ(table.pages.size(), 6U);
  const uint32_t counts[] = {2, 1, 2, 0, 0, 1};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(table.pages[i].row_count, counts[i]) << i;
  EXPECT_EQ(RuleAt(table, 8 * kPage), 1);
  EXPECT_EQ(RuleAt(table, 9 * kPage + 0xf), 1);
  EXPECT_EQ(RuleAt(table, 9 * kPage + 0x10), 0);
  EXPECT_EQ(RuleAt(table, 10 * kPage), 0);
  EXPECT_EQ(RuleAt(table, 12 * kPage - 1), 0);
  EXPECT_EQ(RuleAt(table, 12 * kPage), 2);
  EXPECT_EQ(RuleAt(table, 13 * kPage - 1), 2);
  EXPECT_EQ(RuleAt(table, 13 * kPage), 0);
}

TEST(TableBuilder, HasRoomForSoManyRows) {
  TableBuilder full_page;
  for (uint64_t at = 0; at < 60'000; ++at) full_page.Cover(at, at + 1, 1 + at % 2);
  EXPECT_TRUE(full_page.HasRoomFor(5'000));
  EXPECT_FALSE(full_page.HasRoomFor(6'000));

  TableBuilder full_table;
  for (uint64_t at = 0; full_table.HasRoomFor(1); at += 2)
    full_table.Cover(at, at + 2, 1 + at / 2 % 2);
  const UnwindTable table = Finished(std::move(full_table));
  // Each page may have one more.
  EXPECT_LE(table.rows.size(), UnwindTable::kMostRows);
  EXPECT_GT(table.rows.size(), UnwindTable::kMostRows - UnwindTable::kMostPages - 10'000);
}

TEST(TableBuilder, MakesAnEmptyTableOfNothing) {
  const UnwindTable table = Finished(TableBuilder());
  EXPECT_TRUE(table.empty());
  EXPECT_TRUE(table.pages.empty());
  EXPECT_EQ(RuleAt(table, 0), 0);
  EXPECT_EQ(RuleAt(table, ~uint64_t{0}), 0);
}

TEST(TableBuilder, ReachesBothEndsOfTheAddressSpace) {
  TableBuilder low;
  low.Cover(0, 1, 3);
  EXPECT_EQ(RuleAt(Finished(std::move(low)), 0), 3);
  TableBuilder high;
  high.Cover(~uint64_t{0} - 0x100, ~uint64_t{0}, 3);
  EXPECT_EQ(RuleAt(Finished(std::move(high)), ~uint64_t{0} - 1), 3);
}

void ExpectSound(const UnwindTable& table) {
  uint32_t next = 0;
  for (const UnwindTable::Page& page : table.pages) {
    EXPECT_EQ(page.first_row, next);
    next += page.row_count;
    if (page.row_count == 0) continue;
    EXPECT_EQ(table.rows[page.first_row].pc_low, 0);
    for (uint32_t i = page.first_row + 1; i < next; ++i) {
      EXPECT_LT(table.rows[i - 1].pc_low, table.rows[i].pc_low);
      EXPECT_NE(table.rows[i - 1].rule, table.rows[i].rule);
    }
  }
  EXPECT_EQ(next, table.rows.size());
}

TEST(TableBuilder, IsSoundForAnything) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    TableBuilder builder;
    struct Stretch {
      uint64_t begin, end;
      uint16_t rule;
    };
    std::vector<Stretch> stretches;
    uint64_t at = random() % kPage;
    for (int i = 0; i < 100; ++i) {
      // Of all sizes, often to the border of a page.
      at += random() % 2 == 0 ? 0 : 17 + random() % (uint64_t{1} << random() % 18);
      const uint64_t begin = at;
      at += 1 + random() % (uint64_t{1} << random() % 18);
      if (random() % 4 == 0) at = (at / kPage + 1) * kPage;
      stretches.push_back({begin, at, static_cast<uint16_t>(1 + random() % 3)});
      builder.Cover(begin, at, stretches.back().rule);
    }
    const UnwindTable table = Finished(std::move(builder));
    ExpectSound(table);
    uint64_t end = 0;
    for (const Stretch& s : stretches) {
      if (s.begin > end) {
        EXPECT_EQ(RuleAt(table, s.begin - 1), 0);
        EXPECT_EQ(RuleAt(table, end), 0);
      }
      EXPECT_EQ(RuleAt(table, s.begin), s.rule);
      EXPECT_EQ(RuleAt(table, s.begin + (s.end - s.begin) / 2), s.rule);
      EXPECT_EQ(RuleAt(table, s.end - 1), s.rule);
      end = s.end;
    }
    EXPECT_EQ(RuleAt(table, end), 0);
  }
}

}  // namespace
}  // namespace pyrometer
