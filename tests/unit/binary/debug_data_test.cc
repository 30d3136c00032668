// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_data.h"

#include <gtest/gtest.h>

#include "binary/symbols.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

TEST(DebugData, HoldsTheSymbolsThatWereStripped) {
  const ElfFile elf = OpenFixture("mini_debug");
  const SectionTable sections = *SectionTable::Read(elf);
  EXPECT_FALSE(FindSymbols(sections, SHT_SYMTAB).has_value());
  const Result<ElfFile> image = ReadDebugData(elf, sections);
  ASSERT_TRUE(image.has_value()) << image.error().message();
  EXPECT_TRUE(FindSymbols(*SectionTable::Read(*image), SHT_SYMTAB).has_value());
}

TEST(DebugData, IsNotFoundInMostFiles) {
  const ElfFile elf = OpenFixture("stripped");
  const Result<ElfFile> image = ReadDebugData(elf, *SectionTable::Read(elf));
  EXPECT_EQ(image.error().code(), ErrorCode::kNotFound);
}

TEST(DebugData, IsRefusedWhenDamagedAnywhere) {
  const std::vector<std::byte> good = FixtureBytes("mini_debug");
  const ElfFile elf = *ElfFile::FromBytes(good);
  const Elf64_Shdr section = SectionTable::Read(elf)->Find(".gnu_debugdata")->header;
  for (uint64_t i = 0; i < section.sh_size; i += 37) {
    std::vector<std::byte> bad = good;
    bad[section.sh_offset + i] ^= std::byte{0x55};
    const ElfFile damaged = *ElfFile::FromBytes(bad);
    // xz carries checksums: no flipped bit goes unseen.
    EXPECT_FALSE(ReadDebugData(damaged, *SectionTable::Read(damaged)).has_value()) << i;
  }
}

}  // namespace
}  // namespace pyrometer
