// SPDX-License-Identifier: Apache-2.0
#include "process/address_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Range = std::pair<uint64_t, uint64_t>;

void Add(AddressRanges& ranges, uint64_t start, uint64_t end) {
  ranges.Add(Address(start), Address(end));
}

// What of [0, limit) is in the set.
std::vector<Range> RangesOf(const AddressRanges& ranges, uint64_t limit = 1'000'000'000) {
  std::vector<Range> found;
  for (Address at; at < Address(limit);) {
    const Address end = ranges.EndOfStretch(at, Address(limit));
    if (ranges.Contains(at)) found.emplace_back(at.value(), end.value());
    at = end;
  }
  return found;
}

TEST(AddressRanges, IsEmptyAtFirst) {
  const AddressRanges ranges;
  EXPECT_TRUE(ranges.empty());
  EXPECT_FALSE(ranges.Contains(Address(0)));
  EXPECT_EQ(ranges.EndOfStretch(Address(5), Address(9)), Address(9));
}

TEST(AddressRanges, KnowsItsBorders) {
  AddressRanges ranges;
  Add(ranges, 10, 20);
  EXPECT_FALSE(ranges.Contains(Address(9)));
  EXPECT_TRUE(ranges.Contains(Address(10)));
  EXPECT_TRUE(ranges.Contains(Address(19)));
  EXPECT_FALSE(ranges.Contains(Address(20)));
  EXPECT_EQ(ranges.EndOfStretch(Address(5), Address(15)), Address(10));
  EXPECT_EQ(ranges.EndOfStretch(Address(5), Address(8)), Address(8));
  EXPECT_EQ(ranges.EndOfStretch(Address(10), Address(15)), Address(15));
  EXPECT_EQ(ranges.EndOfStretch(Address(10), Address(99)), Address(20));
  EXPECT_EQ(ranges.EndOfStretch(Address(20), Address(99)), Address(99));
}

TEST(AddressRanges, JoinsWhatOverlapsOrTouches) {
  AddressRanges ranges;
  Add(ranges, 10, 20);
  Add(ranges, 40, 50);
  Add(ranges, 30, 35);
  EXPECT_THAT(RangesOf(ranges), ElementsAre(Range(10, 20), Range(30, 35), Range(40, 50)));
  Add(ranges, 20, 25);
  EXPECT_THAT(RangesOf(ranges), ElementsAre(Range(10, 25), Range(30, 35), Range(40, 50)));
  Add(ranges, 12, 45);
  EXPECT_THAT(RangesOf(ranges), ElementsAre(Range(10, 50)));
  Add(ranges, 15, 16);
  EXPECT_THAT(RangesOf(ranges), ElementsAre(Range(10, 50)));
}

TEST(AddressRanges, IgnoresEmptyAndReversedRanges) {
  AddressRanges ranges;
  Add(ranges, 10, 10);
  Add(ranges, 10, 5);
  EXPECT_TRUE(ranges.empty());
}

TEST(AddressRanges, JoinsTheNearestOfTooManyRanges) {
  AddressRanges ranges;
  for (uint64_t i = 0; i < 1024; ++i) Add(ranges, i * 1000, i * 1000 + 100);
  EXPECT_THAT(RangesOf(ranges), SizeIs(1024));
  Add(ranges, 500'105, 500'110);
  EXPECT_THAT(RangesOf(ranges), SizeIs(1024));
  EXPECT_TRUE(ranges.Contains(Address(500'102))) << "between the two nearest";
  EXPECT_FALSE(ranges.Contains(Address(500'200)));
}

TEST(AddressRanges, ForgetsAllAtOnce) {
  AddressRanges ranges;
  Add(ranges, 10, 20);
  ranges.Clear();
  EXPECT_THAT(RangesOf(ranges), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
