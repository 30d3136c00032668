// SPDX-License-Identifier: Apache-2.0
#include "process/object_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr ObjectId kObject{7};
constexpr uint64_t kPage = 4096;

FileMapping Shows(uint64_t start, uint64_t size, uint64_t offset) {
  return {Address(start), Address(start + size), FileOffset(offset)};
}

Segment Load(uint64_t offset, uint64_t address, uint64_t size, bool executable) {
  return {FileOffset(offset), ElfAddress(address), size, size, executable};
}

ObjectMapping Piece(uint64_t start, uint64_t end, uint64_t bias) {
  return {Address(start), Address(end), kObject, bias};
}

std::vector<ObjectMapping> Split(const FileMapping& mapping, const std::vector<Segment>& segments) {
  return ToObjectMappings(mapping, kObject, segments, kPage);
}

TEST(ObjectMapping, UsesTheSegmentsAddressAndNotItsOffset) {
  // As lld lays out: text at offset 0x2a40 has the address 0x3a40.
  const std::vector<Segment> segments = {Load(0, 0, 0x2a40, false),
                                         Load(0x2a40, 0x3a40, 0x1800, true)};
  const uint64_t start = 0x7f00'0000'3000;
  const auto pieces = Split(Shows(start, 0x3000, 0x2000), segments);
  ASSERT_THAT(pieces, ElementsAre(Piece(start, start + 0x3000, 0x7f00'0000'0000)));
  EXPECT_EQ(pieces[0].ToElfAddress(Address(start + 0xa40)), ElfAddress(0x3a40));
}

TEST(ObjectMapping, HasNoBiasForAnExecutableLinkedAtItsAddress) {
  EXPECT_THAT(Split(Shows(0x401000, 0x1000, 0x1000), {Load(0x1000, 0x401000, 0x800, true)}),
              ElementsAre(Piece(0x401000, 0x402000, 0)));
}

TEST(ObjectMapping, WrapsForAnObjectMappedBelowItsOwnAddress) {
  const auto pieces = Split(Shows(0x1000, 0x1000, 0), {Load(0, 0xffff'0000, 0x1000, true)});
  ASSERT_THAT(pieces, SizeIs(1));
  EXPECT_EQ(pieces[0].ToElfAddress(Address(0x1010)), ElfAddress(0xffff'0010));
}

TEST(ObjectMapping, SplitsWhereSegmentsHaveDifferentBias) {
  // One mapping of the whole file over two executable segments.
  EXPECT_THAT(Split(Shows(0x10000, 0x4000, 0),
                    {Load(0, 0, 0x2000, true), Load(0x2000, 0x200000, 0x2000, true)}),
              ElementsAre(Piece(0x10000, 0x12000, 0x10000),
                          Piece(0x12000, 0x14000, 0x10000 + 0x2000 - 0x200000)));
}

TEST(ObjectMapping, PrefersTheExecutableSegmentOnASharedPage) {
  // The page at 0x1000 belongs to both after rounding.
  const std::vector<Segment> segments = {Load(0, 0, 0x1400, false),
                                         Load(0x1400, 0x2400, 0x600, true)};
  EXPECT_THAT(Split(Shows(0x50000, 0x1000, 0x1000), segments),
              ElementsAre(Piece(0x50000, 0x51000, 0x4e000)));
}

TEST(ObjectMapping, PutsWhatNoSegmentClaimsAboveAllSegments) {
  const auto pieces = Split(Shows(0x10000, 0x3000, 0x1000), {Load(0x1000, 0x1000, 0x1000, true)});
  EXPECT_THAT(pieces,
              ElementsAre(Piece(0x10000, 0x11000, 0xf000), Piece(0x11000, 0x13000, 0xd000)));
  EXPECT_EQ(pieces[1].ToElfAddress(Address(0x11000)), ElfAddress(0x4000)) << "0x2000 + offset";
}

TEST(ObjectMapping, CountsFromTheFilesStartWithoutSegments) {
  EXPECT_THAT(Split(Shows(0x10000, 0x1000, 0x3000), {}),
              ElementsAre(Piece(0x10000, 0x11000, 0xd000)));
}

TEST(ObjectMapping, SurvivesSegmentsThatReachBeyondEverything) {
  const std::vector<Segment> segments = {Load(UINT64_MAX - 5, 0, UINT64_MAX, true),
                                         Load(0, UINT64_MAX, UINT64_MAX, true)};
  EXPECT_THAT(Split(Shows(0x10000, 0x1000, 0), segments),
              ElementsAre(Piece(0x10000, 0x11000, 0x10001)));
  EXPECT_THAT(Split(Shows(0x10000, 0x1000, UINT64_MAX - 0xfff), segments),
              ElementsAre(ObjectMapping{Address(0x10000), Address(0x11000), ObjectId(0), 0}));
}

TEST(ObjectMapping, CoversTheMappingWithoutGaps) {
  const std::vector<Segment> segments = {Load(0x2345, 0x12345, 0x1000, true),
                                         Load(0x4000, 0x24000, 0x10, false),
                                         Load(0x2800, 0x50000, 0x4000, true)};
  for (uint64_t offset = 0; offset < 0x8000; offset += 0x1000) {
    for (uint64_t size = 0x1000; size < 0x8000; size += 0x1000) {
      Address end(0x10000);
      for (const ObjectMapping& piece : Split(Shows(0x10000, size, offset), segments)) {
        EXPECT_EQ(piece.start, end);
        end = piece.end;
      }
      EXPECT_EQ(end, Address(0x10000 + size)) << offset;
    }
  }
}

TEST(ObjectMapping, GivesUpOnAFileThatCutsAMappingToShreds) {
  std::vector<Segment> segments;
  for (uint64_t i = 0; i < 1000; ++i) segments.push_back(Load(i * 16, i * 64, 16, true));
  EXPECT_THAT(Split(Shows(0x10000, 0x4000, 0), segments),
              ElementsAre(ObjectMapping{Address(0x10000), Address(0x14000), ObjectId(0), 0}));
}

// As linked without -z separate-code: text first, then 0x1fe0 bytes of data, 0x3000 in memory.
const std::vector<Segment> kTextFirst = {
    {FileOffset(0), ElfAddress(0), 0x5880, 0x5880, true},
    {FileOffset(0x60a0), ElfAddress(0x70a0), 0x1fe0, 0x3000, false}};

TEST(ObjectMapping, LeavesOfAReservationWhatTheFirstSegmentFills) {
  const FileMapping left = WithoutReservation(Shows(0x10000, 0xb000, 0), kTextFirst, kPage);
  EXPECT_EQ(left.start, Address(0x10000));
  EXPECT_EQ(left.end, Address(0x16000));
  EXPECT_EQ(left.offset, FileOffset(0));
}

TEST(ObjectMapping, TakesNoOtherMappingForAReservation) {
  const auto end_of = [](const FileMapping& mapping, const std::vector<Segment>& segments) {
    return WithoutReservation(mapping, segments, kPage).end.value();
  };
  EXPECT_EQ(end_of(Shows(0x10000, 0x6000, 0), kTextFirst), 0x16000U) << "what was to be left";
  EXPECT_EQ(end_of(Shows(0x10000, 0xa000, 0), kTextFirst), 0x1a000U) << "another length";
  EXPECT_EQ(end_of(Shows(0x10000, 0xb000, 0x1000), kTextFirst), 0x1b000U) << "another offset";
  EXPECT_EQ(end_of(Shows(0x10000, 0xb000, 0), {}), 0x1b000U) << "no ELF file";
  EXPECT_EQ(end_of(Shows(0x10000, 0x5000, 0), {Load(0, 0, 0x4800, true)}), 0x15000U);
  EXPECT_EQ(end_of(Shows(0x10000, 0x1000, 0), {Load(0, 0, 0, true), Load(0, 0, 0x1000, true)}),
            0x11000U);
}

TEST(ObjectMapping, SurvivesReservationsForSegmentsThatMakeNoSense) {
  for (const uint64_t odd : {uint64_t{0}, uint64_t{0x1234}, UINT64_MAX - 0xfff, UINT64_MAX}) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
      const FileMapping mapping = Shows(0x10000, 0x3000, 0);
      const FileMapping left = WithoutReservation(
          mapping, {{Load(odd, odd, size, true), Load(0, odd, size, false)}}, kPage);
      EXPECT_EQ(left.start, mapping.start);
      EXPECT_GT(left.end, left.start);
      EXPECT_LE(left.end, mapping.end);
    }
  }
}

TEST(ObjectMapping, IsNothingForAnEmptyRange) {
  EXPECT_THAT(Split(Shows(0x10000, 0, 0), {Load(0, 0, 0x1000, true)}), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
