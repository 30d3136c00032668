// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_pc_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kSize = 1000;

uint64_t Zigzag(int64_t difference) {
  return difference < 0 ? static_cast<uint64_t>(-difference) * 2 - 1
                        : static_cast<uint64_t>(difference) * 2;
}

// A pair of a table: the value differs by this from the last one (at first from -1), and holds for
// so many quanta.
DwarfBytes& Add(DwarfBytes& table, int64_t difference, uint64_t quanta) {
  return table.Uleb(Zigzag(difference)).Uleb(quanta);
}

TEST(GoPcValues, AreSumsOfDifferences) {
  DwarfBytes table;
  Add(table, 11, 4);
  Add(table, 290, 200);
  Add(table, -301, 1);
  table.U8(0);
  std::vector<GoRun> runs;
  EXPECT_TRUE(GoPcValues(1).Read(table.bytes(), kSize, runs));
  EXPECT_THAT(runs, ElementsAre(GoRun{0, 4, 10}, GoRun{4, 204, 300}, GoRun{204, 205, -1}));
  EXPECT_TRUE(GoPcValues(4).Read(table.bytes(), kSize, runs));
  EXPECT_THAT(runs, ElementsAre(GoRun{0, 16, 10}, GoRun{16, 816, 300}, GoRun{816, 820, -1}));
}

TEST(GoPcValues, BeginWithNoneIfTheFirstDifferenceIsZero) {
  DwarfBytes table;
  Add(table, 0, 4);
  Add(table, 1, 4);
  table.U8(0);
  std::vector<GoRun> runs;
  EXPECT_TRUE(GoPcValues(1).Read(table.bytes(), kSize, runs));
  EXPECT_THAT(runs, ElementsAre(GoRun{0, 4, -1}, GoRun{4, 8, 0}));
}

TEST(GoPcValues, EndWithTheFunction) {
  DwarfBytes table;
  Add(table, 1, 4);
  Add(table, 1, 400);
  std::vector<GoRun> runs;
  EXPECT_TRUE(GoPcValues(1).Read(table.bytes(), 100, runs));
  EXPECT_THAT(runs, ElementsAre(GoRun{0, 4, 0}, GoRun{4, 100, 1}));
}

TEST(GoPcValues, AreNoneInATableThatIsCutOrStandsStill) {
  DwarfBytes cut;
  Add(cut, 1, 4);
  Add(cut, 1, 400);
  DwarfBytes still;
  Add(still, 1, 4);
  Add(still, 1, 0);
  const DwarfBytes overlong = {0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 4, 0};
  for (const DwarfBytes& table : {cut, still, overlong, DwarfBytes()}) {
    std::vector<GoRun> runs = {GoRun{}};
    EXPECT_FALSE(GoPcValues(1).Read(table.bytes(), kSize, runs));
    EXPECT_THAT(runs, IsEmpty());
  }
}

TEST(GoPcValues, StopWhenAllTablesTogetherAreTooLong) {
  DwarfBytes table;
  Add(table, 1, 4);
  Add(table, 1, 4);
  table.U8(0);
  GoPcValues values(1, 5);
  std::vector<GoRun> runs;
  EXPECT_TRUE(values.Read(table.bytes(), kSize, runs));
  EXPECT_TRUE(values.Read(table.bytes(), kSize, runs));
  EXPECT_FALSE(values.Read(table.bytes(), kSize, runs));
}

TEST(GoPcValues, AreLookedUpByOffset) {
  const std::vector<GoRun> runs = {{0, 4, 7}, {4, 9, -1}, {9, 10, 8}};
  EXPECT_EQ(ValueAt(runs, 0), 7);
  EXPECT_EQ(ValueAt(runs, 3), 7);
  EXPECT_EQ(ValueAt(runs, 4), -1);
  EXPECT_EQ(ValueAt(runs, 9), 8);
  EXPECT_EQ(ValueAt(runs, 10), -1);
  EXPECT_EQ(ValueAt({}, 0), -1);
}

}  // namespace
}  // namespace pyrometer
