// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_unit.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <vector>

namespace pyrometer {
namespace {

class UnitBytes {
 public:
  template <typename T>
  UnitBytes& Put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::byte>(value >> 8 * i));
    return *this;
  }
  Result<DwarfUnitHeader> Parse(uint64_t offset, uint64_t section) const {
    DwarfUnitHeader header;
    const Result<void> parsed = ParseUnitHeader(bytes_, offset, section, header);
    if (!parsed) return parsed.error();
    return header;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

UnitBytes Version4(uint32_t length) {
  return UnitBytes().Put(length).Put(uint16_t{4}).Put(uint32_t{0x77}).Put(uint8_t{8});
}

TEST(DwarfUnitHeader, TellsWhereTheUnitEndsAndWhereItsEntriesBegin) {
  const Result<DwarfUnitHeader> header = Version4(100).Parse(1000, 2000);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->end, 1104U);
  EXPECT_EQ(header->first, 1011U);
  EXPECT_EQ(header->abbrevs, 0x77U);
  EXPECT_EQ(header->format, (DwarfFormat{.version = 4}));
}

TEST(DwarfUnitHeader, Has64BitOffsetsAndAnIdInASkeletonOfVersion5) {
  const Result<DwarfUnitHeader> header = UnitBytes()
                                             .Put(uint32_t{0xffffffff})
                                             .Put(uint64_t{100})
                                             .Put(uint16_t{5})
                                             .Put(uint8_t{DW_UT_skeleton})
                                             .Put(uint8_t{8})
                                             .Put(uint64_t{0x1'0000'0000})
                                             .Put(uint64_t{0xabcd})
                                             .Parse(0, 112);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->end, 112U);
  EXPECT_EQ(header->first, 32U);
  EXPECT_EQ(header->abbrevs, 0x1'0000'0000U);
  EXPECT_EQ(header->dwo_id, 0xabcdU);
  EXPECT_EQ(header->format.offset_size, 8);
}

TEST(DwarfUnitHeader, IsMalformedIfItDoesNotTellWhereTheNextUnitIs) {
  const std::vector<std::pair<UnitBytes, uint64_t>> cases = {
      {Version4(100), 103},                       // longer than the section
      {Version4(0), 100},                         // would be read again and again
      {Version4(0xfffffff1), uint64_t{1} << 40},  // a length that stands for nothing
      {UnitBytes().Put(uint16_t{9}), 100},        // cut
      {UnitBytes().Put(~uint32_t{0}).Put(~uint64_t{0}), 100},
  };
  for (const auto& [bytes, section] : cases) {
    const Result<DwarfUnitHeader> header = bytes.Parse(0, section);
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().code(), ErrorCode::kMalformed);
  }
}

TEST(DwarfUnitHeader, TellsWhereTheNextUnitIsOfVersionsAndMachinesThatAreNotKnown) {
  const UnitBytes cases[] = {
      UnitBytes().Put(uint32_t{96}).Put(uint16_t{6}).Put(uint64_t{0}).Put(uint64_t{0}),
      UnitBytes().Put(uint32_t{96}).Put(uint16_t{1}).Put(uint64_t{0}).Put(uint64_t{0}),
      UnitBytes().Put(uint32_t{96}).Put(uint16_t{4}).Put(uint32_t{0}).Put(uint8_t{4}),
  };
  for (const UnitBytes& bytes : cases) {
    DwarfUnitHeader header;
    const Result<void> parsed = ParseUnitHeader(bytes.bytes(), 0, 200, header);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code(), ErrorCode::kUnsupported);
    EXPECT_EQ(header.end, 100U);
  }
}

}  // namespace
}  // namespace pyrometer
