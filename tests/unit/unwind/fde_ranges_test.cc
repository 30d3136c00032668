// SPDX-License-Identifier: Apache-2.0
#include "unwind/fde_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pyrometer {
namespace {

using ::testing::ElementsAre;

// begin is where the instructions start, and tells FDEs apart here.
Fde Made(uint64_t begin, uint64_t end) {
  return {.begin = begin, .end = end, .from = begin};
}

struct Range {
  uint64_t from = 0;
  uint64_t end = 0;
  bool operator==(const Range&) const = default;
};

std::vector<Range> RangesOf(const std::vector<Fde>& fdes) {
  std::vector<Range> ranges;
  for (const Fde& fde : fdes) ranges.push_back({fde.from, fde.end});
  return ranges;
}

TEST(FdeRanges, LeavesDisjointFunctionsAlone) {
  std::vector<Fde> fdes = {Made(30, 40), Made(10, 20), Made(20, 30)};
  EXPECT_EQ(ResolveOverlaps(fdes), 0U);
  EXPECT_THAT(RangesOf(fdes), ElementsAre(Range{10, 20}, Range{20, 30}, Range{30, 40}));
}

TEST(FdeRanges, CutsAFunctionWhereTheNextOneBegins) {
  std::vector<Fde> fdes = {Made(10, 100), Made(20, 30)};
  EXPECT_EQ(ResolveOverlaps(fdes), 1U);
  EXPECT_THAT(RangesOf(fdes), ElementsAre(Range{10, 20}, Range{20, 30}));
}

TEST(FdeRanges, KeepsTheFirstOfThoseWithTheSameBeginning) {
  std::vector<Fde> fdes = {Made(10, 20), Made(10, 100), Made(50, 60)};
  fdes[0].instructions = 1;
  EXPECT_EQ(ResolveOverlaps(fdes), 1U);
  EXPECT_THAT(RangesOf(fdes), ElementsAre(Range{10, 20}, Range{50, 60}));
  EXPECT_EQ(fdes[0].instructions, 1U);
}

TEST(FdeRanges, FindsWhatIsUncovered) {
  const std::vector<Fde> covered = {Made(10, 20), Made(20, 30), Made(50, 60)};
  const struct {
    Fde fde;
    std::vector<Range> rest;
  } cases[] = {
      {Made(0, 5), {{0, 5}}},     {Made(10, 30), {}},
      {Made(0, 15), {{0, 10}}},   {Made(25, 35), {{30, 35}}},
      {Made(15, 55), {{30, 50}}}, {Made(0, 100), {{0, 10}, {30, 50}, {60, 100}}},
      {Made(55, 70), {{60, 70}}}, {Made(70, 80), {{70, 80}}},
      {Made(12, 18), {}},         {Made(30, 50), {{30, 50}}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(RangesOf(Uncovered(std::span(&c.fde, 1), covered)), c.rest)
        << c.fde.begin << " to " << c.fde.end;
  }
  std::vector<Fde> holes;
  for (uint64_t at = 0; at < 1000; at += 10) holes.push_back(Made(at, at + 5));
  const Fde whole = Made(0, 1000);
  EXPECT_EQ(Uncovered(std::span(&whole, 1), holes).size(), 8U);
  const std::vector<Fde> many = {Made(0, 12), Made(25, 31), Made(40, 45), Made(58, 59)};
  EXPECT_THAT(RangesOf(Uncovered(many, covered)),
              ElementsAre(Range{0, 10}, Range{30, 31}, Range{40, 45}));
}

TEST(FdeRanges, KeepsCodeOfTheFileOnly) {
  const std::vector<Segment> segments = {{.offset = FileOffset(0),
                                          .address = ElfAddress(0),
                                          .file_size = 0x100,
                                          .memory_size = 0x100,
                                          .executable = false},
                                         {.offset = FileOffset(0x1000),
                                          .address = ElfAddress(0x1000),
                                          .file_size = 0x100,
                                          .memory_size = 0x200,
                                          .executable = true}};
  std::vector<Fde> fdes = {Made(0, 16),          Made(0x1000, 0x1010), Made(0x10f0, 0x1110),
                           Made(0x1100, 0x1110), Made(0x0ff0, 0x1010), Made(0x3000, 0x3010)};
  KeepCode(fdes, segments);
  EXPECT_THAT(RangesOf(fdes), ElementsAre(Range{0x1000, 0x1010}, Range{0x10f0, 0x1100}));
}

}  // namespace
}  // namespace pyrometer
