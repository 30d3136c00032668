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
              SizeIs(::testing::Ge(1U)));
}

TEST(ObjectMapping, GivesUpOnAFileThatCutsAMappingToShreds) {
  std::vector<Segment> segments;
  for (uint64_t i = 0; i < 1000; ++i) segments.push_back(Load(i * 16, i * 64, 16, true));
  EXPECT_THAT(Split(Shows(0x10000, 0x4000, 0), segments),
              ElementsAre(ObjectMapping{Address(0x10000), Address(0x14000), ObjectId(0), 0}));
}

TEST(ObjectMapping, IsNothingForAnEmptyRange) {
  EXPECT_THAT(Split(Shows(0x10000, 0, 0), {Load(0, 0, 0x1000, true)}), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
