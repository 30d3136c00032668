// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf_cursor.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {
namespace {

TEST(DwarfCursor, ReadsWhatWasWritten) {
  for (const int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{63}, int64_t{64}, int64_t{-64}, int64_t{-65},
        int64_t{1} << 56, int64_t{-1} << 56, int64_t{1} << 62, int64_t{-1} << 62,
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    const DwarfBytes bytes = DwarfBytes().Sleb(value).Uleb(static_cast<uint64_t>(value));
    DwarfCursor cursor(bytes.bytes());
    EXPECT_EQ(cursor.Sleb(), value);
    EXPECT_EQ(cursor.Uleb(), static_cast<uint64_t>(value));
    EXPECT_TRUE(cursor.ok() && cursor.AtEnd());
  }
}

TEST(DwarfCursor, ReadsPaddedNumbers) {
  const DwarfBytes bytes = {0x85, 0x80, 0x80, 0, 0xfb, 0xff, 0xff, 0x7f};
  DwarfCursor cursor(bytes.bytes());
  EXPECT_EQ(cursor.Uleb(), 5U);
  EXPECT_EQ(cursor.Sleb(), -5);
  EXPECT_TRUE(cursor.ok());
}

TEST(DwarfCursor, FailsForGoodBeyondTheEnd) {
  const DwarfBytes bytes = {1, 2, 3};
  DwarfCursor cursor(bytes.bytes());
  EXPECT_EQ(cursor.Fixed<uint32_t>(), 0U);
  EXPECT_FALSE(cursor.ok());
  EXPECT_TRUE(cursor.AtEnd());
  EXPECT_EQ(cursor.Fixed<uint8_t>(), 0U);
  EXPECT_EQ(cursor.Uleb(), 0U);
  EXPECT_EQ(cursor.Sleb(), 0);
  EXPECT_TRUE(cursor.Bytes(1).empty());
  EXPECT_TRUE(cursor.String(16).empty());
}

TEST(DwarfCursor, RefusesWhatDoesNotFit) {
  const DwarfBytes unsigned_ones[] = {
      {0x80},
      {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2},
      {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0},
      {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}};
  for (const DwarfBytes& bytes : unsigned_ones) {
    DwarfCursor cursor(bytes.bytes());
    EXPECT_EQ(cursor.Uleb(), 0U);
    EXPECT_FALSE(cursor.ok());
  }
  const DwarfBytes signed_ones[] = {
      {0x80},
      {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
      {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}};
  for (const DwarfBytes& bytes : signed_ones) {
    DwarfCursor cursor(bytes.bytes());
    EXPECT_EQ(cursor.Sleb(), 0);
    EXPECT_FALSE(cursor.ok());
  }
}

TEST(DwarfCursor, HasNoStringWhereThereIsNothing) {
  DwarfCursor cursor;
  EXPECT_EQ(cursor.String(100), "");
  EXPECT_FALSE(cursor.ok());
}

TEST(DwarfCursor, EndsStringsAtTheirNul) {
  const DwarfBytes bytes = DwarfBytes().String("zR").U8('x');
  DwarfCursor cursor(bytes.bytes());
  EXPECT_EQ(cursor.String(16), "zR");
  EXPECT_EQ(cursor.position(), 3U);
  EXPECT_EQ(cursor.String(16), "");
  EXPECT_FALSE(cursor.ok());
  DwarfCursor limited(bytes.bytes());
  EXPECT_EQ(limited.String(2), "");
  EXPECT_FALSE(limited.ok());
}

}  // namespace
}  // namespace pyrometer
