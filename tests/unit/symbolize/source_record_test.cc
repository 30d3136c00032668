// SPDX-License-Identifier: Apache-2.0
#include "symbolize/source_record.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace pyrometer {
namespace {

using Place = SourceRecord::Place;

// A function of 100 bytes: [10, 60) is of call 1, which lies in call 0, but for [30, 40), which is
// of call 0 itself; behind 90 nothing is known.
SourceRecord Record() {
  return {.start_line = 7,
          .calls = {{.name = 20, .within = {}, .from = {3, 9}, .start_line = 40},
                    {.name = 21, .within = 0, .from = {4, 44}, .start_line = 70}},
          .rows = {{.size = 10, .call = {}, .place = {3, 8}},
                   {.size = 20, .call = 1, .place = {5, 71}},
                   {.size = 10, .call = 0, .place = {4, 41}},
                   {.size = 20, .call = 1, .place = {5, 1'000'000}},
                   {.size = 30, .call = {}, .place = {{}, 0}}}};
}

TEST(SourceRecord, TellsWhichFunctionsCodeIsOf) {
  const std::vector<std::byte> bytes = Encode(Record());
  EXPECT_EQ(SizeOfSourceRecord(bytes), bytes.size());
  const std::vector<SourcePlace> own = PlacesAt(bytes, 9);
  ASSERT_EQ(own.size(), 1U);
  EXPECT_FALSE(own[0].name);
  EXPECT_EQ(own[0].place, (Place{3, 8}));
  EXPECT_EQ(own[0].start_line, 7U);
  const std::vector<SourcePlace> nested = PlacesAt(bytes, 10);
  ASSERT_EQ(nested.size(), 3U);
  EXPECT_EQ(nested[0].name, 21U);
  EXPECT_EQ(nested[0].place, (Place{5, 71}));
  EXPECT_EQ(nested[0].start_line, 70U);
  EXPECT_EQ(nested[1].name, 20U);
  EXPECT_EQ(nested[1].place, (Place{4, 44})) << "from where the inner one was called";
  EXPECT_EQ(nested[1].start_line, 40U);
  EXPECT_EQ(nested[2].place, (Place{3, 9}));
  EXPECT_EQ(PlacesAt(bytes, 39).size(), 2U);
  EXPECT_EQ(PlacesAt(bytes, 59)[0].place, (Place{5, 1'000'000}));
  EXPECT_EQ(PlacesAt(bytes, 89)[0].place, Place());
  EXPECT_TRUE(PlacesAt(bytes, 90).empty());
}

TEST(SourceRecord, ThatIsCutTellsNothing) {
  const std::vector<std::byte> bytes = Encode(Record());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(PlacesAt(std::span(bytes).first(size), 50).empty()) << size;
  }
}

TEST(SourceRecord, WithCallsInACircleEnds) {
  SourceRecord record = Record();
  record.calls[0].within = 1;
  EXPECT_GT(PlacesAt(Encode(record), 10).size(), 2U);
  EXPECT_EQ(PlacesAt(Encode(record), 10).size(), kMostInlined + 1);
  record.calls[0].within = 17;
  EXPECT_EQ(PlacesAt(Encode(record), 10).size(), 3U) << "of a call that is not there";
}

TEST(SourceRecord, WhateverItIsDoesNoHarm) {
  std::vector<std::byte> bytes = Encode(Record());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> changed = bytes;
      changed[at] = static_cast<std::byte>(value);
      for (const uint64_t offset : {uint64_t{0}, uint64_t{50}, ~uint64_t{0}}) {
        EXPECT_LE(PlacesAt(changed, offset).size(), kMostInlined + 1);
      }
    }
  }
}

}  // namespace
}  // namespace pyrometer
